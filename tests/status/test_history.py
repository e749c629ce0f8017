"""The curves of a crawl's life, from Monitor.log."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.formatting import utc
from larmspider.status.history import COLUMNS, WHOLE_BYTES, history, together
from larmspider.status.monitor import MONITOR_COLUMNS

BEGAN = 1_774_958_400.0


def log(path: Path, *runs: list[tuple[float, int]]) -> Path:
    """A Monitor.log of runs: (seconds since BEGAN, pages so far); a page has 1,000 bytes."""
    with path.open("a") as file:
        for run in runs:
            file.write("\t".join(MONITOR_COLUMNS) + "\n")
            for seconds, pages in run:
                fields = (
                    utc(BEGAN + seconds),
                    pages,
                    "0.0",
                    pages * 1000,
                    9,
                    pages * 2,
                    5,
                    1,
                    3,
                    2,
                    7,
                )
                file.write("\t".join(map(str, fields)) + "\n")
    return path


def test_columns_are_the_monitors() -> None:
    assert len(MONITOR_COLUMNS) == COLUMNS


def test_rates_are_between_two_lines(tmp_path: Path) -> None:
    """Exact, whatever the monitor rounded."""
    found = history([log(tmp_path / "Monitor.log", [(5, 10), (10, 30), (20, 30)])])
    assert [point.pages for point in found.points] == [2.0, 4.0, 0.0]
    assert [point.bytes for point in found.points] == [2_000.0, 4_000.0, 0.0]
    assert [point.time - BEGAN for point in found.points] == [5, 10, 20]
    assert (found.pages, found.bytes, found.runs) == (30, 30_000, 1)
    assert found.late_pages == pytest.approx(30 / 20)
    assert found.late_found == pytest.approx(60 / 20)


def test_the_first_line_of_a_run_stands_for_as_long_as_its_rate_says(tmp_path: Path) -> None:
    """The curve does not begin with a peak that never was."""
    path = log(tmp_path / "Monitor.log", [(5, 10), (10, 30)])
    path.write_text(path.read_text().replace("\t0.0\t", "\t2.5\t"))
    assert [point.pages for point in history([path]).points] == [2.5, 4.0]


def test_runs_add_up(tmp_path: Path) -> None:
    """A restart counts from 0 again; in the time between nothing was fetched."""
    path = log(tmp_path / "Monitor.log", [(5, 10), (10, 30)], [(1010, 50), (1015, 60)])
    found = history([path])
    assert (found.pages, found.runs) == (90, 2)
    assert [point.time - BEGAN for point in found.points] == [5, 10, 1005, 1010, 1015]
    assert [point.pages for point in found.points] == [2.0, 4.0, 0.0, 10.0, 2.0]
    assert found.late_pages == pytest.approx(60 / 10), "of this run alone"


def test_a_restart_that_has_more_pages_in_its_first_line_is_a_run(tmp_path: Path) -> None:
    """The heading tells, where the numbers do not."""
    path = log(tmp_path / "Monitor.log", [(5, 10)], [(15, 20)])
    assert history([path]).pages == 30
    assert history([path]).runs == 2


def test_a_long_log_is_sampled(tmp_path: Path) -> None:
    """At most 500 points, and the same curve; the last line is in it."""
    lines = [
        (5.0 * n, 50 * n if n < 9_000 else 450_000 + 5 * (n - 9_000)) for n in range(1, 20_000)
    ]
    path = log(tmp_path / "Monitor.log", lines)
    assert path.stat().st_size > WHOLE_BYTES
    found = history([path])
    assert len(found.points) == 500
    assert found.points[100].pages == pytest.approx(10.0)
    assert found.points[-100].pages == pytest.approx(1.0)
    assert found.pages == lines[-1][1]
    assert found.late_pages == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", "time\tpages\n", "\0\0\0\n", "2026-01-01T00:00:00.000Z\t1"])
def test_what_is_no_line_is_left_out(tmp_path: Path, text: str) -> None:
    """An empty log, a heading, damage, a line that is being written."""
    (tmp_path / "Monitor.log").write_text(text)
    assert history([tmp_path / "Monitor.log"]).points == []
    assert history([tmp_path / "none.log"]).points == []


def test_workers_side_by_side_are_added(tmp_path: Path) -> None:
    """By time, whatever each one's lines are; one alone is as it is."""
    first = history([log(tmp_path / "a.log", [(n, 10 * n) for n in range(1, 101)])])
    second = history([log(tmp_path / "b.log", [(n, 5 * n) for n in range(2, 101, 2)])])
    found = together([first, second], 50)
    assert len(found.points) == 50
    assert found.points[25].pages == pytest.approx(15.0, rel=0.01)
    assert found.points[25].found == pytest.approx(30.0, rel=0.01)
    step = found.points[1].time - found.points[0].time
    assert sum(point.pages for point in found.points) * step == pytest.approx(1485, rel=0.02)
    assert (found.pages, found.runs) == (1500, 1)
    assert found.late_pages == pytest.approx(15.0, rel=0.05)
    assert together([first, history([])]) is first
    assert together([]).points == []


def test_a_worker_counts_from_when_it_came_to_when_it_went(tmp_path: Path) -> None:
    """One runs for 1,000 s, another one from 500 s to 600 s."""
    long = history([log(tmp_path / "a", [(n, 10 * n) for n in range(1, 1001)])])
    short = history([log(tmp_path / "b", [(n, 20 * (n - 500)) for n in range(501, 601)])])
    found = together([long, short], 100)
    assert [round(found.points[at].pages) for at in (10, 48, 55, 70)] == [10, 10, 30, 10]
    assert found.late_pages == pytest.approx(10.0, rel=0.02)
    memory = long.points[0].memory
    assert memory
    assert [found.points[at].memory // memory for at in (10, 55, 70)] == [1, 2, 1]
