"""Fixtures of the fetch: the download handler without a crawl."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.fetch.fetching import Fetcher


@pytest.fixture
def fetcher() -> Iterator[Callable[..., Fetcher]]:
    """Makes handlers by their settings: ``fetcher(DOWNLOAD_MAXSIZE=1000).get(url)``."""
    with ExitStack() as running:
        yield lambda **settings: running.enter_context(Fetcher(**settings))
