"""The log of ``larmspider crawl``: a file of the crawl, and a few lines on the screen."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from larmspider.quiet_log import FIRST_SECS, MAX_HELD, MAX_WARNINGS, MONITOR, ON_SCREEN, QuietLog


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def screen() -> StringIO:
    return StringIO()


@pytest.fixture
def log(tmp_path: Path, screen: StringIO, clock: Clock) -> Iterator[logging.Logger]:
    """A logger beside the root one, with both handlers; they write into tmp_path."""
    quiet = QuietLog(tmp_path, "INFO", screen, clock)
    handlers = (quiet.file, quiet.screen)
    names = ("quiet", MONITOR)
    for name in names:
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.setLevel(logging.DEBUG)
        logger.handlers[:] = handlers
    yield logging.getLogger("quiet")
    for name in names:
        logger = logging.getLogger(name)
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
        logger.handlers[:] = []
    for handler in handlers:
        handler.close()


def test_information_goes_to_the_file_and_warnings_to_the_screen_too(
    log: logging.Logger, screen: StringIO, tmp_path: Path
) -> None:
    (tmp_path / "crawl.json").touch()
    log.debug("three bytes")
    log.info("one page")
    log.warning("the disk\nis nearly full")
    log.error("the disk is full")
    assert screen.getvalue() == "warning: the disk\nerror: the disk is full\n"
    lines = (tmp_path / "crawl.log").read_text("utf-8").splitlines()
    assert [line.partition("] ")[2] for line in lines if "] " in line] == [
        "INFO: one page",
        "WARNING: the disk",
        "ERROR: the disk is full",
    ]


def test_a_directory_that_is_no_crawls_stays_as_it_is(log: logging.Logger, tmp_path: Path) -> None:
    """Records wait in memory until crawl.json is there; of very many the last ones."""
    for number in range(MAX_HELD + 1):
        log.info("record %d.", number)
    assert not list(tmp_path.iterdir())
    (tmp_path / "crawl.json").touch()
    log.info("last")
    lines = (tmp_path / "crawl.log").read_text("utf-8").splitlines()
    assert len(lines) == MAX_HELD
    assert "record 2." in lines[0]


def test_many_warnings_do_not_fill_the_screen(
    log: logging.Logger, screen: StringIO, tmp_path: Path
) -> None:
    for number in range(3 * MAX_WARNINGS):
        log.warning("warning %d", number)
    lines = screen.getvalue().splitlines()
    assert len(lines) == MAX_WARNINGS
    assert lines[-1].endswith(f"(further warnings are in {tmp_path / 'crawl.log'})")


def test_progress_comes_ever_more_rarely(
    log: logging.Logger, screen: StringIO, clock: Clock
) -> None:
    """Without a terminal: after 10, 20, 40, ... seconds."""
    for second in range(0, 1_000, 5):
        clock.now = float(second)
        logging.getLogger(MONITOR).info("%d", second)
    assert screen.getvalue().split() == ["10", "20", "40", "80", "160", "320", "640"]
    assert FIRST_SECS == 10


def test_a_line_that_was_printed_is_not_shown_twice(
    log: logging.Logger, screen: StringIO, tmp_path: Path
) -> None:
    (tmp_path / "crawl.json").touch()
    log.critical("broken", extra=ON_SCREEN)
    assert screen.getvalue() == ""
    assert "CRITICAL: broken" in (tmp_path / "crawl.log").read_text("utf-8")
