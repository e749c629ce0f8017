"""The picture of a crawl on a terminal; it goes nowhere else."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pyte
import pytest
from rich.cells import cell_len
from rich.text import Text

from examples.intranet.serve import DemoServer
from larmspider.extensions.progress import LEAST_SECS, SHARE, next_after
from larmspider.extensions.progress_view import Progress, Region, View
from larmspider.status.forecast import HostForecast
from tests.support.crawling import crawl, environment
from tests.support.pseudo_terminal import PseudoTerminal

COLORS = re.compile(rb"\x1b\[[0-9;]*(?:3[0-7]|9[0-7]|38)[0-9;]*m")
FORETOLD = (
    r"end  in .*: (127\.0\.0\.1:\d+ takes longest: one every 0\.1 s|\d+ URLs at [\d.]+ a second)"
)
"""The second one on a machine that has so much to do that the host's gap is not what limits it."""
PICTURE = re.compile(
    rf"""^.*pages/s .* memory .* (running|waiting \d+ s for 127).*
.*\d+ stored +\d+ queued +\d+ in flight.*
1 host ready *
{FORETOLD}.*
.*
127\.0\.0\.1.*\Z""",
    re.MULTILINE,
)
"""Its six lines, the last of the screen."""
MONITOR = re.compile(r"\d+ pages \([\d.]+/s\)")


def on_terminal(
    start: str, folder: Path, columns: int = 100, term: str = "xterm-256color", **settings: str
) -> PseudoTerminal:
    values = {
        "LARM_WEB": "no",
        "LARM_CHECKPOINT_SECS": "0.5",
        "LARM_MONITOR_SECS": "0.5",
        "LARM_DELAY_RESPONSE_FACTOR": "0",
        "DOWNLOAD_DELAY": "0.1",
        **settings,
    }
    env = {name: values.pop(name) for name in ("NO_COLOR",) if name in values}
    options = [word for name, value in values.items() for word in ("-s", f"{name}={value}")]
    return PseudoTerminal(
        [sys.executable, "-m", "scrapy", "crawl", "intranet", "-a", f"start={start}", *options],
        folder,
        {**environment(folder, "larmspider.settings"), "TERM": term, **env},
        columns,
    )


@pytest.mark.acceptance
def test_a_terminal_shows_what_the_crawl_does(tmp_path: Path) -> None:
    """Rates, totals, hosts and forecast below the log, whose lines stay whole; nothing is left."""
    with DemoServer() as server, on_terminal(server.url, tmp_path, LOG_LEVEL="DEBUG") as terminal:
        terminal.until(lambda: re.search(PICTURE, terminal.text))
        assert COLORS.search(terminal.raw)
        assert terminal.wait() == 0
        assert "pages/s" not in terminal.all
        assert "slowest hosts" not in terminal.all
        assert not MONITOR.search(terminal.all)
        assert "ended       finished" in terminal.all
        logged = re.findall(r"Crawled \(\d+\) <GET (\S+)>", terminal.all.replace("\n", ""))
        assert len(set(logged)) > 40


@pytest.mark.acceptance
def test_no_color_and_narrow_windows_are_respected(tmp_path: Path) -> None:
    """One line without colours, which is never wrapped."""
    with (
        DemoServer() as server,
        on_terminal(
            server.url, tmp_path, columns=45, NO_COLOR="1", LARM_MAX_PAGES="20"
        ) as terminal,
    ):
        terminal.until(lambda: re.search(r"/s   \d+ stored   \d+ queued", terminal.text))
        assert terminal.wait() == 0
        assert not COLORS.search(terminal.raw)
        assert not re.search(r"\d/s   \d+ stored", terminal.all)


@pytest.mark.parametrize(
    "term, settings", [("dumb", {}), ("xterm", {"LARM_PROGRESS": "no"})], ids=["dumb", "no"]
)
def test_where_it_is_not_wanted_the_log_is_all(tmp_path: Path, term: str, settings) -> None:
    """TERM=dumb and LARM_PROGRESS=no: the monitor's lines, and not one control code."""
    settings = settings | {"LARM_MAX_PAGES": "15"}
    with DemoServer() as server, on_terminal(server.url, tmp_path, term=term, **settings) as shown:
        assert shown.wait() == 0
        assert MONITOR.search(shown.all)
        assert b"\x1b" not in shown.raw


def test_a_pipe_gets_the_log_alone(tmp_path: Path) -> None:
    """As Scrapy's users know it."""
    with DemoServer() as server:
        ran = crawl(server.url, tmp_path)
    assert MONITOR.search(ran.err)
    assert "\x1b" not in ran.err + ran.out
    assert "ProgressExtension" not in ran.err


@pytest.fixture
def drawn() -> tuple[Region, pyte.Screen, io.StringIO]:
    """A region over a screen of 20 columns and 8 lines; ``feed`` shows what was written."""
    sink = io.StringIO(newline="\r\n")
    return Region(sink, lambda: (20, 8)), pyte.Screen(20, 8), sink


def screen_of(screen: pyte.Screen, sink: io.StringIO) -> list[str]:
    screen.reset()
    pyte.Stream(screen).feed(sink.getvalue())
    return "\n".join(line.rstrip() for line in screen.display).rstrip().split("\n")


def test_log_lines_go_above_the_picture(drawn) -> None:
    """Also one that comes in pieces, one that is too long, and with a picture that changes."""
    region, screen, sink = drawn
    region.write("before\n")
    region.show(["\033[1mone\033[0m", "two", "three"])
    region.write("first\n")
    assert screen_of(screen, sink) == ["before", "first", "one", "two", "three"]
    region.show(["漢字漢字漢字漢字漢字"])
    region.write("a line longer than 20\n")
    region.write("in ")
    assert screen_of(screen, sink)[-1] == "in"
    region.write("pieces\n")
    end = ["a line longer than 2", "0", "in pieces", "漢字漢字漢字漢字漢字"]
    assert [line.replace(" ", "") for line in screen_of(screen, sink)[-4:]] == [
        line.replace(" ", "") for line in end
    ]
    region.close()
    assert screen_of(screen, sink)[-1] == "in pieces"


def test_a_window_that_became_narrower_is_cleared_whole() -> None:
    """Lines that the terminal wrapped take more lines than were written."""
    sink, width = io.StringIO(), [20]
    region = Region(sink, lambda: (width[0], 8))
    region.show(["x" * 20, "y"])
    width[0] = 10
    sink.truncate(0)
    region.show([])
    assert sink.getvalue().endswith("\033[3A\r\033[J")


def test_a_terminal_that_is_gone_is_no_error() -> None:
    """The crawl goes on without it."""
    sink = io.StringIO()
    region = Region(sink, lambda: (20, 8))
    region.show(["one"])
    sink.close()
    region.show(["two"])
    assert region.write("log\n") == 4


PROGRESS = Progress(
    seconds=725.0,
    pages=12.34,
    bytes=1.2e6,
    memory=310_200_000,
    urls={"stored": 4_501, "queued": 12_876, "in flight": 16, "failed": 3},
    hosts={"ready": 12, "parked": 1},
    end=7_500.0,
    reasons=["slow.example:80 takes longest: one every 10 s."],
    slowest=[
        HostForecast(f"host{n}.\x1b[31mexample:80", 600, 6_000.0, "漢" * 30) for n in range(9)
    ],
    parked=[("bad\x07.example", "http-503, again in 5 min")],
)


@pytest.mark.parametrize("width", [1, 19, 20, 45, 60, 80, 200])
@pytest.mark.parametrize("height", [1, 3, 11, 12, 24, 60])
def test_a_picture_fits_its_window(width: int, height: int) -> None:
    """In columns and lines, without control characters of anybody else's."""
    plain = View(color=False).lines(PROGRESS, width, height)
    assert len(plain) < height
    texts = [Text.from_ansi(line).plain for line in plain]
    assert all(cell_len(text) <= width for text in texts)
    assert all(text.isprintable() for text in texts)
    assert bool(plain) == (width >= 20 and height >= 3)


def test_what_the_picture_says() -> None:
    """At 80 columns and 24 lines."""
    texts = [Text.from_ansi(line).plain.rstrip() for line in View().lines(PROGRESS, 80, 24)]
    assert texts[0] == "12.3 pages/s   1.2 MB/s   310.2 MB memory   12 min 05 s running"
    assert texts[1].startswith("4,501 stored   12,876 queued   16 in flight   3 failed   0 refused")
    assert texts[3].startswith("end  in 2 h 05 min: slow.example:80 takes longest")
    assert texts[4].split() == ["slowest", "hosts", "queued", "left", "because"]
    assert texts[5].split()[1:4] == ["600", "1", "h"]
    assert len([text for text in texts if text.startswith("host")]) == 5
    assert texts[-1].startswith("parked  bad\N{REPLACEMENT CHARACTER}.example  http-503, again in")


def test_the_picture_says_why_nothing_happens() -> None:
    """In place of "running"."""
    waits = replace(PROGRESS, state="waiting 40 s for a\x1b.example:80 (snoozed: http-503)")
    first = Text.from_ansi(View().lines(waits, 120, 24)[0]).plain.rstrip()
    assert first.endswith(
        "s waiting 40 s for a\N{REPLACEMENT CHARACTER}.example:80 (snoozed: http-503)"
    )


def test_cost_decides_when_the_next_picture_is_due() -> None:
    """Pictures and looks take a share of a processor each, whatever one costs."""
    for spent in (0.0, 0.001, 0.01, 0.5):
        assert spent / next_after(spent, LEAST_SECS) <= SHARE
    assert next_after(0.001, LEAST_SECS) == LEAST_SECS
    assert 2 * SHARE <= 0.01
