"""The egg, built once, and nodes that run it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.crawling import PROJECT
from tests.support.deploy.jobs import SlowSite
from tests.support.servers.redis import secured_redis as secured_redis
from tests.support.servers.scrapyd import Scrapyd


@pytest.fixture(scope="session")
def egg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make egg`` builds, with requirements.txt beside it."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "deploy/build_egg.py", str(folder)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "larmspider.egg"


@pytest.fixture
def scrapyd(tmp_path: Path) -> Iterator[Callable[..., Scrapyd]]:
    """Starts nodes: ``scrapyd("127.0.0.1")``; keywords as for Scrapyd."""
    with ExitStack() as running:

        def start(address: str = "127.0.0.1", **how: Any) -> Scrapyd:
            folder = tmp_path / f"node-{address}"
            return running.enter_context(Scrapyd(folder, address, **how))

        yield start


@pytest.fixture
def site() -> Iterator[SlowSite]:
    with SlowSite() as site:
        yield site


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project as a fresh clone has it, and no more."""
    copy = tmp_path_factory.mktemp("clone") / "project"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "crawl*")
    package = PROJECT / "larmspider"
    shutil.copytree(package, copy / "larmspider", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "examples", "benchmarks", "docs", "deploy"):
        shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
    for name in (
        "scrapy.cfg",
        "setup.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "MANIFEST.in",
        "CHANGELOG.md",
    ):
        shutil.copyfile(PROJECT / name, copy / name)
    return copy
