"""Computing what was computed: fold the log stream by stream and compare every projected row.

Replay is given no effects: it cannot send anything, because it holds nothing to send with.
"""

from __future__ import annotations

from app.replay.comparing import Difference
from app.replay.folding import SetAside
from app.replay.history import state_at, state_at_time
from app.replay.walking import Outcome, replay

__all__ = ["Difference", "Outcome", "SetAside", "replay", "state_at", "state_at_time"]
