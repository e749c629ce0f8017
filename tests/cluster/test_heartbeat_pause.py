"""Signs of life come every third of a lease, and sooner while blocks are to change hands."""

from __future__ import annotations

import pytest

from larmspider.cluster.heartbeat import pause
from larmspider.cluster.membership import Beat

LEASE_SECS = 15.0


@pytest.mark.parametrize(
    ("beat", "young", "seconds"),
    [
        (Beat(workers=2), False, 5.0),
        (Beat(workers=2, moving=True), False, 0.5),
        (Beat(workers=1), True, 0.5),
        (Beat(workers=16, moving=True), False, 1.0),
        (Beat(workers=32), True, 2.0),
        (Beat(workers=500, moving=True), True, 5.0),
    ],
)
def test_all_together_ask_16_times_a_second_at_most(
    beat: Beat, young: bool, seconds: float
) -> None:
    assert pause(beat, LEASE_SECS, young=young) == seconds
    assert beat.workers / pause(beat, LEASE_SECS, young=young) <= max(16, beat.workers / 5)


def test_a_short_lease_is_renewed_three_times_all_the_same() -> None:
    assert pause(Beat(moving=True), 0.3, young=True) == pytest.approx(0.1)
