"""A full disk ends the crawl with a message; when there is room again, nothing is missing."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.recovery.killed_crawl import KilledCrawl
from tests.support.recovery.running import description
from tests.support.recovery.site import Site

BROKE_OFF = re.compile(
    r"^scrapy crawl: the crawl broke off: (.*); run the same command", re.MULTILINE
)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def _break(crawl: KilledCrawl, file_limit: int = 0) -> str:
    """A run that must break off; its reason."""
    assert not crawl.run(None, file_limit=file_limit, may_break=True)
    found = BROKE_OFF.search(crawl.log)
    assert found, crawl.log
    assert crawl.log.count("The crawl stops because of an error") <= 1
    return found[1]


@pytest.mark.parametrize(
    ("limit", "page_file", "first"),
    [
        (200_000, 1_000_000, r"File too large: '.*/pagefile_0.pfl'"),
        (70_000, 60_000, "cannot write (anchors|the frontier in .*): mdb_txn_commit"),
    ],
)
def test_files_that_may_not_grow_end_the_crawl(
    site: Site, tmp_path: Path, limit: int, page_file: int, first: str
) -> None:
    """RLIMIT_FSIZE: a write fails with EFBIG, of a page file or of an LMDB table, and names it."""
    site.seen.clear()
    sizes = {"LARM_PAGEFILE_BYTES": str(page_file), "DOWNLOAD_MAXSIZE": "60000"}
    crawl = KilledCrawl(site, tmp_path, **sizes)
    for run in range(2):
        reason = _break(crawl, limit)
        assert run or re.search(first, reason)
        assert crawl.log.count("Traceback") <= 16, "not one for each page that waits"
        assert description(crawl.crawl)["end"] == "broken"
    assert crawl.run(None)
    crawl.check_end()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A file system of 8 MB, and a function that gives it another size."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(disk)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    try:
        done = mount("size=8m")
    except FileNotFoundError:
        pytest.skip("there is no mount command (Debian package mount)")
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield disk, lambda size: mount("remount", f"size={size}").check_returncode()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _fill(path: Path) -> None:
    """Write until there is no room."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4096))


def test_a_full_file_system_ends_the_crawl(
    site: Site, small_disk: tuple[Path, Callable[[str], None]]
) -> None:
    """ENOSPC, also at the next start while it is still full; with room it ends complete."""
    site.seen.clear()
    disk, resize = small_disk
    crawl = KilledCrawl(site, disk)
    assert "No space left on device" in _break(crawl)
    _fill(disk / "rest")
    assert not crawl.run(None, may_break=True)
    assert "No space left on device" in crawl.log
    (disk / "rest").unlink()
    resize("100m")
    assert crawl.run(None)
    crawl.check_end()
