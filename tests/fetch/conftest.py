"""Fixtures of the fetch: the download handler without a crawl, libcurl without the handler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.fetch.fetching import BareCurl, Fetcher


@pytest.fixture
def fetcher() -> Iterator[Callable[..., Fetcher]]:
    """Makes handlers by their settings: ``fetcher(DOWNLOAD_MAXSIZE=1000).get(url)``."""
    with ExitStack() as running:
        yield lambda **settings: running.enter_context(Fetcher(**settings))


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BareCurl]:
    """pycurl with a sites file in ``tmp_path``, and no proxy in the environment."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    made = BareCurl(tmp_path)
    yield made
    made.curl.close()
