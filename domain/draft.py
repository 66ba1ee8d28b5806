"""A decision in the making."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.commands import Body, Context, Decision
from domain.events import FileEvent, MessageOrder
from domain.evolution import evolve
from domain.states import File
from domain.telling import Notice, tell


@dataclass(slots=True)
class Draft:
    """A decision in the making: the state moves with each event that is added."""

    stream: str
    file: File
    context: Context
    events: list[FileEvent] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)

    def add(self, event: FileEvent) -> None:
        """Record the event and move on."""
        self.events.append(event)
        self.file = evolve(self.file, event)

    def tell(self, notice: Notice) -> tuple[int, tuple[MessageOrder, ...]]:
        """Order the messages of a notice; gives its sequence and the orders."""
        telling = tell(self.stream, self.file, notice, self.context)
        self.bodies.extend(telling.bodies)
        return telling.sequence, telling.orders

    @property
    def decision(self) -> Decision:
        """What was drafted."""
        return Decision(self.file, tuple(self.events), tuple(self.bodies))

    @property
    def now_ms(self) -> int:
        """The time of the decision."""
        return self.context.now_ms
