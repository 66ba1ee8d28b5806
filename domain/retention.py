"""What may be forgotten, and when. Receipts and the log are in no class: they are never deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Class = Literal["payloads", "deliveries", "messages", "deleted", "artifacts"]

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long each class is kept, in seconds; ``None`` is for ever.

    ``payloads`` are raw webhook bodies, ``deliveries`` the history of deliveries and attempts,
    ``messages`` the bodies of finished messages, ``deleted`` the artifacts of files that were
    deleted at their source, ``artifacts`` all others.
    """

    payloads_s: float | None = 30 * _DAY_S
    deliveries_s: float | None = 90 * _DAY_S
    messages_s: float | None = 90 * _DAY_S
    deleted_s: float | None = 30 * _DAY_S
    artifacts_s: float | None = None

    def kept_s(self, kind: Class) -> float | None:
        """How long things of this class are kept, in seconds; ``None`` is for ever."""
        match kind:
            case "payloads":
                return self.payloads_s
            case "deliveries":
                return self.deliveries_s
            case "messages":
                return self.messages_s
            case "deleted":
                return self.deleted_s
            case "artifacts":
                return self.artifacts_s


def is_due(kind: Class, *, since_ms: int, now_ms: int, policy: RetentionPolicy) -> bool:
    """Whether what has been of this class since then may be forgotten now."""
    before_ms = due_before_ms(kind, now_ms=now_ms, policy=policy)
    return before_ms is not None and since_ms <= before_ms


def due_before_ms(kind: Class, *, now_ms: int, policy: RetentionPolicy) -> int | None:
    """What has been of this class since this moment or longer is due; ``None`` if nothing ever is.

    Rounded down: nothing is forgotten a moment too early.
    """
    kept_s = policy.kept_s(kind)
    return None if kept_s is None else int((now_ms - kept_s * 1000) // 1)
