"""What is ordered at the console: the API's own orders, each with a reason, first tried dry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from litestar import Request, post
from litestar.exceptions import NotFoundException, PermissionDeniedException
from litestar.params import FromPath

from app.web.access import Role
from app.web.api import arrivals, campaigns, dead, files, parts, ping, work
from app.web.api.dead import Bulk, DeadFilter, DeadIn
from app.web.api.files import ReprocessIn
from app.web.api.office import Reasoned
from app.web.api.orders import Preview
from app.web.api.work import RedeliverIn, ResolveIn
from app.web.console import again, selection
from app.web.console.asking import ask, made
from app.web.console.entry import form_of, proven
from app.web.console.pages import Page, Visit, Visiting, local, moved, page, with_said
from app.web.console.session import PATH, signed_in

Form = Mapping[str, str]
_DRY = "what would happen"


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that may be ordered, and who may."""

    role: Role
    do: Callable[[Visit, Form], Page]


@post("/orders/{order:str}", guards=[signed_in("viewer")], status_code=200)
async def give_order(
    request: Request[Any, Any, Any], visit: Visiting, order: FromPath[str]
) -> Page:
    """Do what a form of ours orders, for those who may."""
    form = await form_of(request)
    proven(visit, form)
    if order == "compare":
        return _compare(request, visit)
    deed = DEEDS.get(order)
    if deed is None or visit.session is None:
        raise NotFoundException
    if not visit.session.may(deed.role):
        raise PermissionDeniedException(f"this needs the role {deed.role}")
    return await asyncio.to_thread(deed.do, visit, form)


def _simple(
    handler: Any, kind: type[Any], *fields: str, names: str
) -> Callable[[Visit, Form], Page]:
    """An order about one thing, whose id the form has under ``names``."""

    def do(visit: Visit, form: Form) -> Page:
        told = {name: form[name] for name in fields if form.get(name)}
        values: dict[str, Any] = {k: v == "yes" if k == "force" else v for k, v in told.items()}
        body = made(kind, reason=form.get("reason", "").strip(), **values)
        ask(handler, visit.office, visit.who, form.get(names, ""), body, form.get("key", ""))
        return done(form)

    return do


def done(form: Form) -> Page:
    """Back to where the order was given, which says that it was recorded."""
    return moved(with_said(local(form.get("back", PATH)), "recorded"))


def _compare(request: Request[Any, Any, Any], visit: Visit) -> Page:
    if visit.session is None or not visit.session.may("operator"):
        raise PermissionDeniedException("this needs the role operator")
    request.app.state.comparison.begin()
    return moved(f"{PATH}/replay")


def _switch(visit: Visit, form: Form) -> Page:
    body = made(Reasoned, reason=form.get("reason", "").strip())
    kind, name, verb = form.get("kind", ""), form.get("name", ""), form.get("verb", "")
    office, who, key = visit.office, visit.who, form.get("key", "")
    if kind == "all":
        handler = parts.all_pause if verb == "pause" else parts.all_resume
        ask(handler, office, who, body, key)
        return done(form)
    switch = parts.SWITCHES.get((kind, verb))
    if switch is None:
        raise NotFoundException
    ask(switch, office, who, name, body, key)
    return done(form)


def _dead(visit: Visit, form: Form) -> Page:
    """Retry or discard by cause: what would happen first, then what did."""
    is_dry = form.get("sure", "") != "yes"
    wanted = made(
        DeadFilter,
        kind=form.get("kind", ""),
        name=form.get("name", ""),
        error=form.get("error", ""),
        ids=tuple(form["ids"].split()) if form.get("ids") else (),
    )
    reason = form.get("reason", "").strip() or (_DRY if is_dry else "")
    body = made(DeadIn, reason=reason, filter=wanted, dry_run=is_dry)
    verb = "discard" if form.get("verb") == "discard" else "retry"
    handler = dead.dead_discard if verb == "discard" else dead.dead_retry
    key = "" if is_dry else form.get("key", "")
    found: Bulk = ask(handler, visit.office, visit.who, body, key)
    return page(visit, "bulk.html", bulk=found, form=form, verb=verb, cause=wanted)


def _reprocess(visit: Visit, form: Form) -> Page:
    is_dry = form.get("sure", "") != "yes"
    reason = form.get("reason", "").strip() or (_DRY if is_dry else "")
    body = made(
        ReprocessIn,
        reason=reason,
        version=form.get("version", ""),
        recipe=form.get("recipe", ""),
        dry_run=is_dry,
    )
    file = form.get("file", "")
    key = "" if is_dry else form.get("key", "")
    found = ask(files.file_reprocess, visit.office, visit.who, file, body, key)
    if isinstance(found, Preview):
        return page(visit, "reprocess.html", preview=found, form=form, file=file)
    return done({"back": f"{PATH}/files/{file}"})


def _ping(visit: Visit, form: Form) -> Page:
    name = form.get("name", "")
    body = made(Reasoned, reason=form.get("reason", "").strip())
    found = ask(ping.destination_test, visit.office, visit.who, name, body)
    return page(visit, "pinged.html", pinged=found, name=name)


def _whole_body(visit: Visit, form: Form) -> Page:
    name = form.get("delivery", "")
    found = ask(arrivals.delivery_one, visit.office, visit.who, name, full=True)
    return page(visit, "delivery.html", delivery=found)


DEEDS: Mapping[str, Deed] = {
    "job-retry": Deed("operator", _simple(work.job_retry, Reasoned, names="job")),
    "job-cancel": Deed("operator", _simple(work.job_cancel, Reasoned, names="job")),
    "redeliver": Deed(
        "operator", _simple(work.message_redeliver, RedeliverIn, "force", names="message")
    ),
    "resolve": Deed(
        "operator", _simple(work.message_resolve, ResolveIn, "outcome", names="message")
    ),
    "hold": Deed("operator", _simple(files.file_hold, Reasoned, names="file")),
    "release": Deed("operator", _simple(files.file_release, Reasoned, names="file")),
    "erase": Deed("admin", _simple(files.file_erase, Reasoned, names="file")),
    "accept-as-new": Deed(
        "operator", _simple(arrivals.delivery_accept, Reasoned, names="delivery")
    ),
    "dismiss": Deed("operator", _simple(arrivals.delivery_dismiss, Reasoned, names="delivery")),
    "campaign": Deed("operator", again.begin),
    "campaign-pause": Deed(
        "operator", _simple(campaigns.campaign_pause, Reasoned, names="campaign")
    ),
    "campaign-resume": Deed(
        "operator", _simple(campaigns.campaign_resume, Reasoned, names="campaign")
    ),
    "campaign-stop": Deed("operator", _simple(campaigns.campaign_stop, Reasoned, names="campaign")),
    "ping": Deed("operator", _ping),
    "switch": Deed("operator", _switch),
    "dead": Deed("operator", _dead),
    "reprocess": Deed("operator", _reprocess),
    "reprocess-many": Deed("operator", selection.reprocess),
    "whole-body": Deed("admin", _whole_body),
}
HANDLERS: list[Any] = [give_order]
