"""Coming in and going out; language and theme; the files that pages are made with."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from litestar import Request, Response, get, post
from litestar.datastructures import Cookie
from litestar.exceptions import NotFoundException, PermissionDeniedException
from litestar.params import FromPath, FromQuery

from app.web.console import session
from app.web.console.language import LANGUAGES
from app.web.console.pages import (
    HEADERS,
    LANGUAGE_COOKIE,
    THEME_COOKIE,
    THEMES,
    Page,
    Visit,
    Visiting,
    local,
    moved,
    page,
)
from app.web.console.session import PATH, signed_in

_STATIC = Path(__file__).parent / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_YEAR_S = 366 * 86_400
_CODE_LETTERS = 40


@get("/sign-in")
async def sign_in_page(visit: Visiting) -> Page:
    """The form that asks for a token or the code on the terminal."""
    back = local(visit.query.get("next", PATH))
    return page(visit, "sign_in.html", next=back, wrong=False)


@post("/sign-in")
async def sign_in(request: Request[Any, Any, Any], visit: Visiting) -> Page:
    """A session for the holder of a token, or of the code that the terminal shows."""
    form = await form_of(request)
    back = local(form.get("next", PATH))
    cookie = await asyncio.to_thread(_admitted, request, visit, form.get("token", ""))
    if cookie is None:
        return page(visit, "sign_in.html", status=401, next=back, wrong=True)
    return moved(back, cookie)


@post("/sign-out", guards=[signed_in("viewer")])
async def sign_out(request: Request[Any, Any, Any], visit: Visiting) -> Page:
    """The browser forgets the session."""
    proven(visit, await form_of(request))
    return moved(f"{PATH}/sign-in", session.end(visit.office.config))


@get("/language/{tag:str}")
async def speak(visit: Visiting, tag: FromPath[str], back: FromQuery[str] = PATH) -> Page:
    """Speak this language from now on."""
    return moved(back, _kept(visit, LANGUAGE_COOKIE, tag if tag in LANGUAGES else "en"))


@get("/theme/{name:str}")
async def dress(visit: Visiting, name: FromPath[str], back: FromQuery[str] = PATH) -> Page:
    """Be light, dark, or as the system is."""
    return moved(back, _kept(visit, THEME_COOKIE, name if name in THEMES else "auto"))


@get("/static/{name:str}")
async def static(name: FromPath[str]) -> Response[bytes]:
    """One of the few files that pages are made with."""
    found = _files().get(name)
    if found is None:
        raise NotFoundException
    headers = dict(HEADERS) | {"cache-control": "no-cache"}
    kind = _KINDS[Path(name).suffix]
    return Response(found, media_type=f"{kind}; charset=utf-8", headers=headers)


@get("/{elsewhere:path}", guards=[signed_in("viewer")])
async def elsewhere(elsewhere: FromPath[str]) -> Page:
    """Whatever else lies below the console is not there."""
    del elsewhere
    raise NotFoundException


async def form_of(request: Request[Any, Any, Any]) -> dict[str, str]:
    """The fields of a form that a page of ours sent; any other is refused."""
    if not session.is_from_here(request.headers):
        raise PermissionDeniedException("the form came from another site")
    text = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=100))


def proven(visit: Visit, form: dict[str, str]) -> None:
    """Refuse a form that does not carry the proof of the visitor's session."""
    if visit.session is None or not session.is_proven(visit.session, form.get("proof", "")):
        raise PermissionDeniedException("the form is not one of this session; load the page again")


def _admitted(request: Request[Any, Any, Any], visit: Visit, told: str) -> Cookie | None:
    keeper = request.app.state.doorkeeper
    told = told.strip()
    office = visit.office
    if cookie := session.begin(office, keeper, told):
        return cookie
    if office.sign_in is None or not told or len(told) > _CODE_LETTERS:
        return None
    made = office.sign_in.exchange(told)
    return session.begin(office, keeper, made.token) if made else None


def _kept(visit: Visit, key: str, value: str) -> Cookie:
    return Cookie(
        key=key,
        value=value,
        path=PATH,
        max_age=_YEAR_S,
        httponly=True,
        samesite="lax",
        secure=session.is_secure(visit.office.config),
    )


@cache
def _files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in _STATIC.iterdir() if path.suffix in _KINDS}


HANDLERS: list[Any] = [sign_in_page, sign_in, sign_out, speak, dress, static, elsewhere]
