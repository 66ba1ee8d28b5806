"""``listen``: deliveries as they arrive, with what became of them and why."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.screen import DEFAULT_CONFIG, ConfigOption, JsonOption, UrlOption

if TYPE_CHECKING:  # --help needs none of it
    from app.cli.client import Api

_LOOK_AGAIN_S = 0.3
_PAGE = 100


def listen(
    source: Annotated[str, typer.Argument(metavar="SOURCE")],
    config: ConfigOption = DEFAULT_CONFIG,
    url: UrlOption = "",
    *,
    json: JsonOption = False,
) -> None:
    """Print deliveries of SOURCE as they arrive: the verdict, and the reason in words.

    The first refusal of a kind is shown at once, those that follow are counted for a minute.
    """
    from app.cli.client import Reach, connected
    from app.cli.known import source_or_exit
    from app.cli.screen import config_or_exit
    from app.cli.sending import address_or_exit
    from app.cli.stopping import stopped
    from app.clock import SystemClock

    if not url:
        # Without a process there is nothing to listen to, and the store would be in our hands.
        address_or_exit(config_or_exit(config))
    clock, ended = SystemClock(), threading.Event()
    with stopped(ended), connected(Reach(config, url)) as api:
        source_or_exit(api, source)
        known = {item["id"] for item in _newest(api, source)}
        if not json:
            print(f"Listening for deliveries of {source}. Ctrl-C ends it.", flush=True)
        while not clock.wait(ended, _LOOK_AGAIN_S):
            for item in reversed(_newest(api, source)):
                if item["id"] not in known:
                    known.add(item["id"])
                    _show(item, as_json=json)


def _newest(api: Api, source: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get("/deliveries", source=source, limit=_PAGE)["items"]
    return items


def _show(item: dict[str, Any], *, as_json: bool) -> None:
    import json

    if as_json:
        print(json.dumps(item, ensure_ascii=False), flush=True)
        return
    count = f" ({item['count']} of them)" if item.get("count", 1) > 1 else ""
    what = item.get("event_id") or item.get("delivery_id") or ""
    why = item.get("reason") or ""
    key = f"key {item['key_id']}" if item.get("key_id") else ""
    digest = f"digest {item['digest'].removeprefix('sha256:')[:12]}" if item.get("digest") else ""
    parts = [
        str(item.get("received_at") or ""),
        f"{item['verdict']}{count}",
        what,
        why,
        key,
        digest,
    ]
    print("  ".join(part for part in parts if part), flush=True)
