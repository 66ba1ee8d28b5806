"""Makes a stored body for each event that has none yet: ``python -m tests.goldens``.

A stored event never changes, so a file that is there is never written again. A new shape of an
event is a new schema, an upcaster, and one more file.
"""

from __future__ import annotations

import json
import types
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from app.store.codec import encode_event
from domain.commands import Cause
from domain.events import Event
from domain.installation import EVENT_TYPES

FOLDER = Path(__file__).parent / "golden"
SALT = bytes(range(16))
CAUSE = Cause("operator", id="tok_1", operator="Åsa Öberg", reason="sie bat darum", trace="00-4bf9")


@dataclass(frozen=True, slots=True)
class Golden:
    """A stored event as a release wrote it."""

    name: str
    type: str
    schema: int
    body: bytes
    salt: bytes
    parts: bytes


def goldens() -> list[Golden]:
    """All that were ever written."""
    return [_read(path) for path in sorted(FOLDER.glob("*.json"))]


def sample(kind: type[Event]) -> Event:
    """An event of this kind in which no field has its default."""
    return _filled(kind)  # type: ignore[no-any-return]


def _read(path: Path) -> Golden:
    held = json.loads(path.read_text(encoding="utf-8"))
    kind, schema = path.stem.split(".")
    return Golden(
        name=path.stem,
        type=kind,
        schema=int(schema),
        body=held["body"].encode(),
        salt=bytes.fromhex(held["salt"]),
        parts=held["parts"].encode(),
    )


def _filled(kind: Any) -> Any:
    hints = get_type_hints(kind)
    return kind(**{f.name: _value(f.name, hints[f.name]) for f in fields(kind)})


def _value(name: str, hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return arguments[-1]
    if origin in {Union, types.UnionType}:
        return _value(name, next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        inner = arguments[:1] if Ellipsis in arguments else arguments
        return tuple(_value(name, each) for each in inner)
    if is_dataclass(hint):
        return _filled(hint)
    return {str: f"{name} – 你好 😀", int: 9007199254740993, bool: True}[hint]


def main() -> None:
    """Write what is missing."""
    FOLDER.mkdir(exist_ok=True)
    for name, kind in EVENT_TYPES.items():
        path = FOLDER / f"{name}.{kind.schema}.json"
        if not path.exists():
            stored = encode_event(
                sample(kind),
                stream="fil_golden", revision=7, cause=CAUSE, salt=SALT,
            )  # fmt: skip
            held = {
                "body": stored.body.decode(), "salt": stored.salt.hex(),
                "parts": stored.parts.decode(),
            }  # fmt: skip
            path.write_text(json.dumps(held, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
