"""The heartbeat renews while Redis answers, retries while it does not, and ends when fenced."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest
import redis

from larmspider.cluster.heartbeat import Heartbeat, pause
from larmspider.cluster.membership import NO_LOAD, Beat, Load, Membership, WorkerLease
from larmspider.frontier.storage.backend import Fenced

SECS = 0.3


class Said(Membership):
    """Answers as a test wants it."""

    def __init__(self, answer: Callable[[int], Beat]) -> None:
        self.answer, self.asked = answer, 0

    def beat(self, load: Load = NO_LOAD) -> Beat:
        self.asked += 1
        return self.answer(self.asked)


class Heart:
    def __init__(self, answer: Callable[[int], Beat]) -> None:
        self.beats: list[Beat] = []
        self.enough, self.fenced = threading.Event(), threading.Event()
        self.lease = WorkerLease(SECS)
        self.heart = Heartbeat(Said(answer), self.lease, self.beaten, self.over)

    def beaten(self, beat: Beat) -> None:
        self.beats.append(beat)
        if len(self.beats) == 4:
            self.enough.set()

    def over(self, error: Fenced) -> None:
        self.fenced.set()


def test_the_lease_is_renewed_again_and_again() -> None:
    one = Heart(lambda asked: Beat(workers=asked))
    assert not one.lease.valid
    one.heart.start()
    assert one.enough.wait(30)
    one.heart.stop()
    assert [beat.workers for beat in one.beats[:4]] == [1, 2, 3, 4]
    assert one.lease.until > one.lease.now() - 30


def test_a_lease_counts_from_the_request_and_not_from_the_answer() -> None:
    """Redis may have renewed it long before its answer comes."""
    now = [100.0]

    def slow(_asked: int) -> Beat:
        now[0] += 10.0
        return Beat()

    lease = WorkerLease(15.0, lambda: now[0])
    Heartbeat(Said(slow), lease, lambda _: None, lambda _: None).beat()
    assert lease.until == pytest.approx(100.0 + 13.5)


@pytest.mark.parametrize("error", [redis.ConnectionError, ValueError])
def test_redis_that_does_not_answer_is_asked_until_it_does(
    caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    """Or answers with nonsense."""

    def answer(asked: int) -> Beat:
        if asked < 30:
            raise error("gone")
        return Beat()

    one = Heart(answer)
    with caplog.at_level(logging.WARNING):
        one.heart.start()
        assert one.enough.wait(30)
        one.heart.stop()
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("Redis has not renewed this worker's lease for 0 s (gone): nothing")
    assert "continues" in lines[1]


def test_a_worker_that_is_fenced_may_do_nothing_more() -> None:
    def answer(asked: int) -> Beat:
        if asked > 1:
            raise Fenced("too late")
        return Beat()

    one = Heart(answer)
    one.heart.start()
    assert one.fenced.wait(30)
    assert not one.lease.valid
    one.heart.stop()
    assert len(one.beats) == 1


# Signs of life come every third of a lease, and sooner while blocks are to change hands.


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
