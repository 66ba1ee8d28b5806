"""Log lines: one line a record, data with a name, nothing secret, no forged second line."""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Literal, TextIO, cast

import structlog

from app.clock import Clock

Level = Literal["debug", "info", "warning", "error"]
LONGEST_VALUE = 2000
_HIDDEN = "[hidden]"
_SECRET_KEY = re.compile(
    r"secret|token|password|authorization|cookie|api_?key|signature$|^body$", re.IGNORECASE
)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/?#@]*@)?([^\s?#]*)(?:[?#]\S*)?")
_PLAIN = re.compile(r"[!-~]+")
# Finds its configuration at the first line: importing this module does nothing.
log = cast("structlog.typing.FilteringBoundLogger", structlog.get_logger())
_NOISY = ("alembic", "httpx", "httpcore", "dramatiq", "pika", "urllib3")


def configure_logs(stream: TextIO, *, clock: Clock, as_json: bool, level: Level = "info") -> None:
    """Send all records of this process to ``stream``: JSON lines, or lines for people.

    What libraries say through ``logging`` comes out the same way.
    """
    number = cast("int", getattr(logging, level.upper()))
    _Told.debug = number <= logging.DEBUG
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _stamped(clock),
            _with_short_error,
            _clean,
            _as_json if as_json else _for_people,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Bridge()], level=max(number, logging.INFO), force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


class _Told:
    debug = True


def is_debug_told() -> bool:
    """Whether lines for debugging go anywhere: asked where making one would be the dearest part."""
    return _Told.debug


def without_credentials(text: str) -> str:
    """The text with each address in it shown without user, password, query and fragment."""
    return _URL.sub(r"\1\2", text)


class _Bridge(logging.Handler):
    """What a library logs, as a record of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        error = record.exc_info if record.exc_info and record.exc_info[1] else None
        say = log.warning if record.levelno >= logging.WARNING else log.info
        say("library.said", library=record.name, text=text, exc_info=error)


Event = MutableMapping[str, Any]


def _stamped(clock: Clock) -> Callable[[object, str, Event], Event]:
    def stamp(_logger: object, _method: str, event: Event) -> Event:
        now = clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"at": now, "level": event.pop("level"), "event": event.pop("event"), **event}

    return stamp


def _with_short_error(_logger: object, _method: str, event: Event) -> Event:
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exception()
    error = info[1] if isinstance(info, tuple) else info
    if not isinstance(error, BaseException):
        return event
    # Its text may quote an address, a header or a body: type and places are enough to find it.
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
    return {**event, "error": type(error).__qualname__, "error_at": places}


def _clean(_logger: object, _method: str, event: Event) -> Event:
    return {key: _cleaned(key, value) for key, value in event.items()}


def _cleaned(key: str, value: object) -> object:
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    if _SECRET_KEY.search(key) and not key.endswith("_id"):
        return _HIDDEN
    if isinstance(value, Mapping):
        return {str(name): _cleaned(str(name), inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(key, inner) for inner in value]
    text = without_credentials(str(value))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _as_json(_logger: object, _method: str, event: Event) -> str:
    # ASCII: line separators and reversing marks of Unicode are escaped like control characters.
    return json.dumps(event, ensure_ascii=True, separators=(",", ":"))


def _for_people(_logger: object, _method: str, event: Event) -> str:
    at, level, name = event.pop("at"), event.pop("level"), event.pop("event")
    values = " ".join(f"{key}={_quoted(value)}" for key, value in event.items())
    return f"{at[11:19]} {level:7} {_quoted(name)} {values}".rstrip()


def _quoted(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=True)
