"""A crawl of the demo intranet, served; and headless Chromium to look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from examples.intranet.serve import DemoServer
from tests.support.crawling import crawl
from tests.support.web.browser import Browser
from tests.support.web.serving import Served


@pytest.fixture(scope="session")
def demo_crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a finished crawl of the demo intranet. Read it, and leave it as it is."""
    folder = tmp_path_factory.mktemp("demo")
    with DemoServer() as server:
        ran = crawl(server.url, folder, LARM_MONITOR_SECS="0.2")
    assert ran.status == 0, ran.err
    return folder / "crawl"


@pytest.fixture
def served() -> Iterator[Callable[..., Served]]:
    """Serves directories: ``served(folder).get("/")``."""
    with ExitStack() as running:

        def start(path: Path, **more: object) -> Served:
            return running.enter_context(Served(path, **more))  # type: ignore[arg-type]

        yield start


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests; each opens what it needs."""
    with Browser() as running:
        yield running
