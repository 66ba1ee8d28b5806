"""Many messages sent again: what an order would be about, then how far each order is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import get
from litestar.params import FromQuery

from app.web.api import campaigns
from app.web.api.campaign_shapes import CampaignFilter, CampaignIn, CampaignPreview
from app.web.console.asking import ask, made
from app.web.console.pages import Page, Visit, Visiting, moved, page, with_said
from app.web.console.session import PATH, signed_in

_DRY = "what would happen"
_FIELDS = ("destination", "state", "error")


@get("/campaigns", guards=[signed_in("viewer")], sync_to_thread=True)
def campaign_page(visit: Visiting, cursor: FromQuery[str] = "") -> Page:
    """Orders about many messages, the last first, each with how far it is."""
    found = ask(campaigns.campaign_list, visit.office, visit.who, limit=20, cursor=cursor)
    return page(visit, "campaigns.html", found=found)


def begin(visit: Visit, form: Mapping[str, str]) -> Page:
    """Send again what matches; dry unless the form says that one is sure."""
    is_dry = form.get("sure", "") != "yes"
    told = {field: form[field] for field in _FIELDS if form.get(field)}
    body = made(
        CampaignIn,
        reason=form.get("reason", "").strip() or (_DRY if is_dry else ""),
        filter=made(CampaignFilter, **told),
        rate=_number(form.get("rate", "")),
        canary=is_dry or form.get("canary") == "yes",
        dry_run=is_dry,
    )
    key = "" if is_dry else form.get("key", "")
    found = ask(campaigns.campaign_begin, visit.office, visit.who, body, key)
    if isinstance(found, CampaignPreview):
        return page(visit, "campaign_begin.html", preview=found, form=form)
    return moved(with_said(f"{PATH}/campaigns", "recorded"))


def _number(text: str) -> float:
    """A rate as it was told; what is none fits no order."""
    try:
        return float(text) if text else 10.0
    except ValueError:
        return -1.0


HANDLERS: list[Any] = [campaign_page]
