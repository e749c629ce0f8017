"""Values that take long to make."""

from __future__ import annotations

import threading

import pytest

from larmspider.errors import CrawlDirError
from larmspider.status.refreshing import STALE, RefreshingCache


class Maker:
    """Counts; takes ``seconds`` by the clock."""

    def __init__(self) -> None:
        self.now, self.seconds, self.made, self.error = 0.0, 0.0, 0, False
        self.done = threading.Event()

    def clock(self) -> float:
        return self.now

    def __call__(self) -> int:
        self.now += self.seconds
        if self.error:
            raise CrawlDirError("gone")
        self.made += 1
        self.done.set()
        return self.made


def test_it_is_made_once_then_in_the_background() -> None:
    """The old one is given while the new one is made, unless it is much too old."""
    maker = Maker()
    kept = RefreshingCache(maker, 5.0, maker.clock)
    assert [kept.get(), kept.get()] == [1, 1]
    maker.now = 5.0
    maker.done.clear()
    assert kept.get() == 1
    assert maker.done.wait(10)
    with kept._making:
        assert kept.get() == 2
    maker.now += 5.0 * STALE
    assert kept.get() == 3
    kept.forget()
    assert kept.get() == 4


def test_what_is_forgotten_while_it_is_made_is_made_again() -> None:
    """It was begun before the change that made somebody forget it."""
    maker = Maker()

    def make() -> int:
        if not maker.made:
            kept.forget()
        return maker()

    kept = RefreshingCache(make, 5.0, maker.clock)
    assert [kept.get(), kept.get(), kept.get()] == [1, 2, 2]


def test_who_waits_is_given_none_that_is_older_than_it_may_be() -> None:
    """Also through a value that is made of another one: the sum of both is no older than one."""
    maker = Maker()
    kept = RefreshingCache(maker, 5.0, maker.clock)
    made_of_it = RefreshingCache(lambda: kept.get(wait=True), 5.0, maker.clock)
    assert [kept.get(wait=True), made_of_it.get(wait=True)] == [1, 1]
    maker.now = 4.9
    assert made_of_it.get(wait=True) == 1
    maker.now = 5.0
    assert made_of_it.get(wait=True) == 2


def test_what_takes_long_is_made_seldom() -> None:
    """2% of the time at most: 1 s of work each 50 s."""
    maker = Maker()
    maker.seconds = 1.0
    kept = RefreshingCache(maker, 5.0, maker.clock)
    kept.get()
    maker.now += 49.0
    assert kept.get() == 1
    assert maker.made == 1


def test_errors_are_told_to_who_asks() -> None:
    """And the next one tries again."""
    maker = Maker()
    maker.error = True
    kept = RefreshingCache(maker, 5.0, maker.clock)
    for _ in range(2):
        with pytest.raises(CrawlDirError):
            kept.get()
    maker.error = False
    assert kept.get() == 1
