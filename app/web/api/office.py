"""What the API's handlers work with, and the pieces that many of them share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter, SkipValidation
from litestar.types import Scope
from msgspec import Meta, Struct

from app.artifacts import Blobs
from app.clock import Clock
from app.config import Config
from app.ledger import Ledger
from app.store.engine import Store
from app.store.reading.pages import Ask, CursorError, Page
from app.web.access import Access, SignIn
from app.web.auth import Who, who_asks
from app.web.problems import Problem
from app.web.rest import ProblemError
from domain.telling import instant

# What a column of the store can hold.
MOST_POSITION = 2**63 - 1
_POSITION_DIGITS = 19

T = TypeVar("T")
U = TypeVar("U")

Limit = Annotated[int, QueryParameter(ge=1, le=200, description="how many at most")]
InState = Annotated[str, QueryParameter(name="state", max_length=40)]
After = Annotated[int, QueryParameter(ge=0, le=MOST_POSITION, description="a position")]
Cursor = Annotated[str, QueryParameter(max_length=500, description="`next` of the page before")]


class Pinged(Struct):
    """What came of a test message: delivered, failed, or unclear where no answer came."""

    outcome: str
    url: str = ""
    status: int | None = None
    duration_ms: int | None = None
    response_body: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Office:
    """What the API's handlers work with."""

    config: Config
    store: Store
    ledger: Ledger
    blobs: Blobs
    clock: Clock
    access: Access
    sign_in: SignIn | None
    stopping: threading.Event
    ping: Callable[[str], Pinged | None] | None = None

    @property
    def now_ms(self) -> int:
        """The present in milliseconds since 1970."""
        return int(self.clock.now().timestamp() * 1000)


# What every handler may ask for, as it is: it was made by us and needs no validation.
Here: TypeAlias = NamedDependency[SkipValidation[Office]]
Asker: TypeAlias = NamedDependency[SkipValidation[Who]]


class Listing(Struct, Generic[T]):
    """One page of a list; ``next`` is the cursor of the page behind it."""

    items: list[T]
    next: str | None = None


class Reasoned(Struct, forbid_unknown_fields=True):
    """What every order says: why."""

    reason: Annotated[str, Meta(min_length=1, max_length=1000)]


def provide_office(state: State) -> Office:
    """The office of this process."""
    found: Office = state.office
    return found


def provide_who(scope: Scope) -> Who:
    """Whoever the guard let through."""
    return who_asks(scope)  # type: ignore[arg-type]


DEPENDENCIES = {
    "office": Provide(provide_office, sync_to_thread=False),
    "who": Provide(provide_who, sync_to_thread=False),
}


def paged(
    limit: int, cursor: str, read: Callable[[Ask], Page[T]], shape: Callable[[T], U]
) -> Listing[U]:
    """A page of what a query gives, each shaped; a foreign cursor is the client's mistake."""
    try:
        page = read(Ask(limit, cursor))
    except CursorError as error:
        raise ProblemError(Problem(400, "invalid-request", str(error))) from None
    return Listing([shape(item) for item in page.items], page.next)


def there(found: T | None) -> T:
    """What was found; nothing is a 404."""
    if found is None:
        raise ProblemError(Problem(404, "not-found"))
    return found


def at(at_ms: int | None) -> str | None:
    """A time in RFC 3339; nothing for none."""
    return instant(at_ms * 1000) if at_ms else None


def moment(text: str) -> datetime | None:
    """An RFC 3339 time that a client told; ``None`` for what is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def position(text: str) -> int | None:
    """A position of the log that a client told; ``None`` for what is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _POSITION_DIGITS
    return int(text) if is_number and int(text) <= MOST_POSITION else None


def instant_ms(name: str, text: str) -> int:
    """A time that a client told, in milliseconds since 1970; 0 for none."""
    found = moment(text) if text else None
    if text and found is None:
        raise ProblemError(Problem(400, "invalid-request", f"{name}: must be a time in RFC 3339"))
    return round(found.timestamp() * 1000) if found else 0


def first(values: Iterable[Any]) -> Any:
    """The first of them, ``None`` without any."""
    return next(iter(values), None)
