"""No point is only declared: each of them is killed by a test that has it in its list."""

from __future__ import annotations

import pytest

from app.points import POINTS
from tests.crash import test_effect_points as effects
from tests.crash import test_points as alone
from tests.crash import test_points_of_several as several
from tests.crash import test_upkeep_points as upkeep
from tests.crash import test_walk_points as walks

# Each list parametrizes a test that fails where the process did not die at the point. Those of
# several processes run whole by ``make crash``, which alone has the sequencer's.
KILLED_BY = {
    "test_points": (*alone.ON_THE_WAY, *alone.ASKED),
    "test_points_of_several": (*several.ON_THE_WAY, *several.OF_MIGRATION),
    "test_effect_points": effects.POINTS,
    "test_walk_points": walks.POINTS,
    "test_upkeep_points": (*upkeep.RESTORE, *upkeep.MOVE, *upkeep.ERASE, *upkeep.SWEEP),
}


@pytest.mark.req("F11")
def test_every_point_is_killed_by_a_test() -> None:
    killed = {point.partition(":")[0] for points in KILLED_BY.values() for point in points}
    assert killed == set(POINTS)
