"""Pages: what every one of them has, and the headers that let nothing foreign run on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from litestar import MediaType, Request, Response
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from app.web.api.office import Office
from app.web.auth import Who
from app.web.console import advice, language, shown
from app.web.console.session import PATH, Session, session_of

LANGUAGE_COOKIE = "laufzettel_language"
THEME_COOKIE = "laufzettel_theme"
THEMES = ("auto", "light", "dark")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-frame-options": "DENY",
}
Page: TypeAlias = Response[str]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of someone at the console: who, in which language, and what they asked."""

    office: Office
    session: Session | None
    language: str
    theme: str
    path: str
    query: Mapping[str, str] = field(repr=False)

    @property
    def who(self) -> Who:
        """Whoever signed in; only behind a guard."""
        if self.session is None:
            raise RuntimeError("nobody signed in")
        return self.session.who

    @property
    def here(self) -> str:
        """The address of this page, to come back to."""
        kept = {k: v for k, v in self.query.items() if k != "said"}
        return f"{self.path}?{urlencode(kept)}" if kept else self.path

    def say(self, words: str, **values: object) -> str:
        """The words in the visitor's language."""
        return language.said(self.language, words, **values)


Visiting: TypeAlias = NamedDependency[SkipValidation[Visit]]


def visit_of(request: Request[Any, Any, Any]) -> Visit:
    """What is known of a request before anything is done for it."""
    theme = request.cookies.get(THEME_COOKIE, "")
    return Visit(
        office=request.app.state.office,
        session=session_of(request.scope),
        language=language.chosen(
            request.cookies.get(LANGUAGE_COOKIE, ""), request.headers.get("accept-language", "")
        ),
        theme=theme if theme in THEMES else "auto",
        path=request.scope["path"],
        query={key: str(value) for key, value in request.query_params.items()},
    )


def page(visit: Visit, template: str, /, *, status: int = 200, **values: Any) -> Page:
    """A page from its template."""
    known = {
        "visit": visit,
        "session": visit.session,
        "lang": visit.language,
        "now_ms": visit.office.now_ms,
        "key": visit.office.access.dice.salt().hex(),
    }
    text = _PAGES.get_template(template).render(known | values)
    return Response(text, status_code=status, media_type=MediaType.HTML, headers=dict(HEADERS))


def moved(to: str, *cookies: Cookie) -> Page:
    """Go on elsewhere in the console, by asking with GET."""
    headers = dict(HEADERS) | {"location": local(to)}
    return Response(
        "", status_code=303, media_type=MediaType.HTML, headers=headers, cookies=list(cookies)
    )


def local(address: str) -> str:
    """The address if it lies in the console, else the console's first page."""
    parts = urlsplit(address)
    is_ours = parts.path == PATH or parts.path.startswith(f"{PATH}/")
    is_plain = address.isprintable() and "\\" not in address
    if parts.scheme or parts.netloc or not is_ours or not is_plain:
        return PATH
    # What is no ASCII would not pass as a header.
    return address if address.isascii() else parts.path


def with_said(address: str, word: str) -> str:
    """The address with what the page shall say first."""
    joint = "&" if "?" in address else "?"
    return f"{address}{joint}said={word}"


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["t"] = _said
    made.globals["advise"] = advice.advise
    made.globals["labels"] = language.LANGUAGES
    made.filters.update(
        size=shown.size,
        span=shown.span,
        number=shown.number,
        clean=shown.clean,
        short=shown.short,
        address=shown.address,
        ms=shown.milliseconds,
    )
    return made


@pass_context
def _said(context: Context, words: str, **values: object) -> str:
    return language.said(context["lang"], words, **values)


_PAGES = _environment()
