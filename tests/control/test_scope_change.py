"""The preview of a scope is bounded, whatever the expression: it runs beside the crawl."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from larmspider.control import scope_change
from larmspider.control.scope_change import preview
from larmspider.errors import ConfigError
from larmspider.frontier.storage.records import Counts, QueuedUrl
from larmspider.urls.patterns import Engine, Pattern

URLS = [f"http://wiki/{n}" for n in range(500)]


class Crawl:
    """As far as a preview asks."""

    @contextmanager
    def frontier(self) -> Iterator[Any]:
        yield self

    def counts(self) -> Counts:
        return Counts(queued=len(URLS))

    def waiting(self, after: bytes) -> tuple[list[QueuedUrl], bytes | None]:
        return [QueuedUrl(url, url, b"", "wiki:80") for url in URLS], None


def slow(monkeypatch: pytest.MonkeyPatch, engine: Engine, seconds: float) -> None:
    """A pattern that nothing was found out about when it was tried."""

    def matches(url: str) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    monkeypatch.setattr(scope_change, "compiled", lambda text: Pattern(text, engine, matches))


def test_a_pattern_that_hangs_is_refused() -> None:
    """By examples that are tried before it runs; RE2 runs such patterns in linear time."""
    with pytest.raises(
        ConfigError, match=r"takes more than 0.5 s for a URL such as .*RE2 does not"
    ):
        preview(Crawl(), "(a+)+(?=b)")  # type: ignore[arg-type]
    assert preview(Crawl(), "(a+)+b").startswith("500 of 500")  # type: ignore[arg-type]


def test_a_pattern_that_is_slow_for_a_queued_url_alone_is_refused_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the first such URL, not after a slice of 500 of them."""
    monkeypatch.setattr(scope_change, "LONGEST_MATCH_SECS", 0.05)
    slow(monkeypatch, "re", 0.1)
    with pytest.raises(
        ConfigError, match=r"takes 0\.1 s for the queued URL http://wiki/0, and RE2"
    ):
        preview(Crawl(), "x")  # type: ignore[arg-type]


def test_a_preview_ends_in_the_middle_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """When its time is over; it says of how many URLs it tells."""
    slow(monkeypatch, "re", 0.02)
    said = preview(Crawl(), "x", seconds=0.1)  # type: ignore[arg-type]
    assert said.startswith("about 500 of 500 queued URLs would be dropped (")
