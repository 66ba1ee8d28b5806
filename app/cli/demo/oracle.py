"""What the receiver must have heard, worked out from the script alone.

It shares no line with the product: versions are numbers, the greatest that was told counts, and
what was told before a greater one may have been finished before that came, or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.cli.demo.script import Await, Contradict, Scene, Tell

Heard = tuple[str, str]  # the message's type, and the version for those about one


@dataclass(frozen=True, slots=True)
class Expected:
    """Messages about one file: those that must come, and those that may."""

    must: frozenset[Heard]
    may: frozenset[Heard]


def expected(scene: Scene) -> Expected:
    """What a scene must lead to."""
    end = "file.version.failed" if scene.document.flaw else "file.version.completed"
    must: set[Heard] = set()
    may: set[Heard] = set()
    greatest = 0
    for act in scene.acts:
        match act:
            case Tell(event=event) if event.action == "version":
                number = int(event.version or 0)
                if number > greatest:
                    may.add((end, str(number)))
                    greatest = number
            case Tell(event=event):
                must.add((f"file.{event.action}", ""))
            case Await(version=version):
                must.add((end, version))
            case Contradict():
                pass
    must.add((end, str(greatest)))
    return Expected(frozenset(must), frozenset(may - must))
