"""A worker may act for nine tenths of its lease, from when it asked for it."""

from __future__ import annotations

import time

from larmspider.cluster.membership import WorkerLease, clock


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_counts_from_when_its_renewal_was_sent() -> None:
    now = Clock()
    lease = WorkerLease(10.0, now)
    assert not lease.valid, "it was never renewed"
    sent = lease.now()
    now.now += 5.0  # the answer takes its time
    lease.renewed(sent)
    now.now = 108.9
    assert lease.valid
    now.now = 109.0
    assert not lease.valid


def test_an_answer_that_comes_late_shortens_nothing() -> None:
    now = Clock()
    lease = WorkerLease(10.0, now)
    lease.renewed(100.0)
    lease.renewed(95.0)
    now.now = 108.0
    assert lease.valid


def test_a_lease_that_was_ended_is_over() -> None:
    lease = WorkerLease(10.0, Clock())
    lease.renewed(100.0)
    lease.end()
    assert not lease.valid
    lease.renewed(100.0)
    assert not lease.valid, "a beat was under way when others had taken over a block"


def test_the_clock_is_one_that_nobody_sets_and_no_sleep_stops() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)
