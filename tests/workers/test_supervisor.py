"""larmspider/workers: processes run side by side; the workers are small programs of these tests."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from larmspider.commands.workers import Command
from larmspider.extraction.processes import page_process
from larmspider.extraction.processes.page_process import AUTO, ON
from larmspider.formatting import utc
from larmspider.status.monitor import MONITOR_COLUMNS
from larmspider.workers import supervisor as process
from larmspider.workers.outcome import Progress
from larmspider.workers.supervisor import RESTARTS, StopSignals, Supervisor, WorkerProcess

WAIT_SECS = 120.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started again without much ado."""
    monkeypatch.setattr(process, "BACKOFF_SECS", 0.01)


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is, though a shell that runs this in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def stop() -> Iterator[StopSignals]:
    with StopSignals() as heard:
        yield heard


@pytest.fixture
def supervise(tmp_path: Path, stop: StopSignals) -> Callable[..., tuple[Supervisor, list[str]]]:
    """A supervisor of workers that run these programs, and what it says."""

    def make(**programs: str) -> tuple[Supervisor, list[str]]:
        said: list[str] = []
        workers = [
            WorkerProcess(name, [sys.executable, "-c", program, str(tmp_path / name)], log)
            for name, program in programs.items()
            for log in [tmp_path / name / "worker.log"]
        ]
        return Supervisor(workers, Progress({}), 3600.0, said.append, stop), said

    return make


ENDS_WITH = "import sys; sys.exit({})"
COUNTS = """
import os, pathlib, signal, sys
runs = pathlib.Path(sys.argv[1], "runs")
with runs.open("a") as file:
    file.write("x")
if runs.stat().st_size < {times}:
    {end}
"""
FIRST = 'print("first", flush=True)'
WAITS = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("first", flush=True) or signal.signal(
    signal.SIGTERM, lambda *_: print("second", flush=True) or sys.exit(1)))
pathlib.Path(sys.argv[1], "up").touch()
while True:
    signal.pause()
"""

ENDS_LATER = """
import pathlib, signal, sys, time
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append(1) or print("heard", flush=True))
pathlib.Path(sys.argv[1], "up").touch()
while not heard:
    time.sleep(0.01)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    time.sleep(0.01)
"""
HEARS_SIGHUP = pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="run by nohup"
)


@pytest.mark.usefixtures("heard")
def test_a_ctrl_c_while_the_command_checks_its_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is begun, and no traceback is shown."""
    monkeypatch.setattr(
        Command, "_crawl", lambda *_arguments: signal.raise_signal(signal.SIGINT), raising=True
    )
    command = Command()
    command.run(
        [], argparse.Namespace(spargs=[], n=1, rebuild=False, complete=False, json=False, file=None)
    )
    assert command.exitcode == 0
    assert capsys.readouterr().err == "scrapy workers: stopped before anything was begun\n"


@pytest.mark.parametrize(
    ("number", "mode", "sets"), [(1, AUTO, False), (2, AUTO, True), (2, ON, False)]
)
def test_many_workers_extract_no_pages_beside_themselves(
    monkeypatch: pytest.MonkeyPatch, number: int, mode: str, sets: bool
) -> None:
    """Two workers on two cores do not, unless the setting says on."""
    monkeypatch.setattr(page_process, "cores", lambda: 2)
    command = Command()
    command.settings = Settings({"LARM_EXTRACTION_BESIDE": mode, "LARM_REFRESH_RUN": ""})
    given = argparse.Namespace(n=number, set=[], loglevel=None, nolog=False, file=None)
    assert ("LARM_EXTRACTION_BESIDE=off" in command._command("intranet", {}, given, "")) is sets


@pytest.mark.parametrize(
    ("statuses", "expected"), [((0, 0), 0), ((2, 2), 2), ((0, 1), 1), ((0, 2), 1)]
)
def test_exit_status(
    supervise: Callable[..., tuple[Supervisor, list[str]]], statuses: tuple[int, int], expected: int
) -> None:
    """0: all ended well; 2: all were refused; 1: one did not."""
    supervisor, _ = supervise(a=ENDS_WITH.format(statuses[0]), b=ENDS_WITH.format(statuses[1]))
    supervisor.run()
    assert supervisor.exit_status == expected


@pytest.mark.parametrize("end", ["sys.exit(75)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_who_ends_for_now_is_started_again(
    supervise: Callable[..., tuple[Supervisor, list[str]]], tmp_path: Path, end: str
) -> None:
    """Status 75, or a signal that was not ours."""
    supervisor, said = supervise(a=COUNTS.format(times=3, end=end))
    supervisor.run()
    assert (supervisor.exit_status, supervisor.workers[0].restarts) == (0, 2)
    assert (tmp_path / "a" / "runs").stat().st_size == 3
    assert len([line for line in said if "started again" in line]) == 2


def test_but_not_for_ever(
    supervise: Callable[..., tuple[Supervisor, list[str]]], tmp_path: Path
) -> None:
    """After RESTARTS in a row it is given up; the others go on."""
    supervisor, said = supervise(
        a=COUNTS.format(times=99, end="sys.exit(75)"), b=ENDS_WITH.format(0)
    )
    supervisor.run()
    assert supervisor.exit_status == 75
    assert (tmp_path / "a" / "runs").stat().st_size == RESTARTS + 1
    assert said[-1].endswith("it is given up")


def test_progress_is_shown_while_a_worker_runs_and_at_the_end(tmp_path: Path) -> None:
    """Never of no workers."""
    said: list[str] = []
    command = [sys.executable, "-c", COUNTS.format(times=2, end="sys.exit(75)"), str(tmp_path)]
    worker = WorkerProcess("a", command, tmp_path / "worker.log")
    Supervisor([worker], Progress({}), 0.01, said.append, StopSignals()).run()
    assert "1 worker: 0 pages" in " ".join(said)
    assert "0 workers" not in " ".join(said)
    assert said[-1].startswith("all workers have ended after ")


def test_status_1_is_not_tried_again(
    supervise: Callable[..., tuple[Supervisor, list[str]]], tmp_path: Path
) -> None:
    """It broke off: a full disk would be full again."""
    supervisor, _ = supervise(a=COUNTS.format(times=9, end="sys.exit(1)"))
    supervisor.run()
    assert (tmp_path / "a" / "runs").stat().st_size == 1


@pytest.mark.parametrize(("signals", "heard"), [(1, "first\n"), (2, "first\nsecond\n")])
def test_signals_are_passed_on_once_and_twice(
    supervise: Callable[..., tuple[Supervisor, list[str]]],
    tmp_path: Path,
    stop: StopSignals,
    signals: int,
    heard: str,
) -> None:
    """To each worker as often as they come."""
    program = (
        WAITS
        if signals == 2
        else WAITS.replace(
            'print("first", flush=True)', 'print("first", flush=True) or sys.exit(0)'
        )
    )
    supervisor, _ = supervise(a=program, b=program)
    logs = [tmp_path / name / "worker.log" for name in "ab"]

    def interrupt() -> None:
        _until(lambda: all((log.parent / "up").exists() for log in logs))
        os.kill(os.getpid(), signal.SIGTERM)
        _until(lambda: all("first" in log.read_text() for log in logs))
        if signals == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    supervisor.run()
    thread.join()
    assert stop.count == signals
    assert supervisor.exit_status == signals - 1
    assert [log.read_text() for log in logs] == [heard, heard]


def test_a_signal_while_a_worker_is_being_started_reaches_it(
    supervise: Callable[..., tuple[Supervisor, list[str]]],
    tmp_path: Path,
    stop: StopSignals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It runs, and its process is not known yet. Later ones are not started, and to be stopped
    before a crawl has begun is no failure."""
    start = subprocess.Popen

    def interrupted(*arguments: Any, **more: Any) -> Any:
        running = start(*arguments, **more)
        signal.raise_signal(signal.SIGTERM)
        return running

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    supervisor, _ = supervise(a="import time; time.sleep(600)", b="import time; time.sleep(600)")
    supervisor.run()
    assert [worker.status for worker in supervisor.workers] == [-signal.SIGTERM, None]
    assert (stop.count, supervisor.exit_status) == (1, 0)
    assert not (tmp_path / "b").exists()


@pytest.mark.usefixtures("heard")
def test_signals_are_heard_only_while_somebody_looks() -> None:
    """Before and after, what was set before holds; when nothing runs any more one ends at once."""
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert (stop.take(), stop.take(), stop.count) == (2, 0, 2)
        stop.end_at_once()
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


@HEARS_SIGHUP
def test_a_closed_terminal_is_one_sigterm(
    supervise: Callable[..., tuple[Supervisor, list[str]]], tmp_path: Path, stop: StopSignals
) -> None:
    """The system sends SIGHUP, and the shell too; a second SIGTERM would end them at once."""
    supervisor, _ = supervise(a=ENDS_LATER)
    up, log = tmp_path / "a" / "up", tmp_path / "a" / "worker.log"

    def hang_up() -> None:
        _until(up.exists)
        os.kill(os.getpid(), signal.SIGHUP)
        _until(lambda: "heard" in log.read_text())
        os.kill(os.getpid(), signal.SIGHUP)

    thread = threading.Thread(target=hang_up)
    thread.start()
    supervisor.run()
    thread.join()
    assert (stop.count, supervisor.exit_status) == (1, 0)
    assert log.read_text() == "heard\n"


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_matters_is_shown_with_the_workers_name(
    supervise: Callable[..., tuple[Supervisor, list[str]]], tmp_path: Path
) -> None:
    """Errors, and the message it ended with, once for all; the rest is in its log."""
    program = r"""
import sys
print("2026-01-01 00:00:00 [x] INFO: usual")
print("2026-01-01 00:00:00 [x] ERROR: it \x1b[2J burns")
print("scrapy crawl: another crawl lies here")
sys.exit(2)
"""
    supervisor, said = supervise(a=program, b=program)
    supervisor.run()
    assert sorted(line for line in said if "burns" in line) == [
        "[a] 2026-01-01 00:00:00 [x] ERROR: it \ufffd[2J burns",
        "[b] 2026-01-01 00:00:00 [x] ERROR: it \ufffd[2J burns",
    ]
    assert len([line for line in said if "another crawl lies here" in line]) == 1
    assert not any("usual" in line for line in said)
    assert "usual" in (tmp_path / "a" / "worker.log").read_text()


SUPERVISOR_KILLED = """
import os, pathlib, signal, sys, time
from larmspider.workers.supervisor import WorkerProcess

folder = pathlib.Path(sys.argv[1])
program = '''
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], "pid").write_text(str(os.getpid()))
time.sleep(600)
'''
worker = WorkerProcess("a", [sys.executable, "-c", program, str(folder)], folder / "log")
worker.tend()
while not (folder / "pid").exists() or not (folder / "pid").read_text():
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_when_who_started_them_is_killed(tmp_path: Path) -> None:
    """As told by SIGTERM: nothing runs on unseen."""
    command = [sys.executable, "-c", SUPERVISOR_KILLED, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    _until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.acceptance
def test_progress_is_the_sum_of_all(tmp_path: Path) -> None:
    """Lines of this run count; the counts of a worker before its restart are not lost."""
    now = 1_800_000_000.0
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text(_line(now - 60, pages=999))
    progress = Progress({"a": a, "b": b, "c": tmp_path / "none.log"}, lambda: now)
    assert progress.line(3).startswith("3 workers: 0 pages (0.0/s), 0 queued")
    a.write_text(_line(now, pages=1))
    assert progress.line(3).startswith("3 workers: 1 page (")
    now += 10
    a.write_text(_line(now, pages=100, queued=7) + "torn")
    b.write_text("\t".join(MONITOR_COLUMNS) + "\n" + _line(now, pages=50, queued=3))
    assert progress.line(2).startswith("2 workers: 150 pages (14.9/s), 10 queued")
    now += 10
    a.write_text(_line(now, pages=5))
    assert progress.line(1).startswith("1 worker: 155 pages (0.5/s), 3 queued")
    now += 10
    wanted = "all workers have ended after 30 s: 155 pages (5.2/s), 0 failed"
    assert progress.last_line() == wanted


def _line(when: float, *, pages: int, queued: int = 0) -> str:
    fields = dict.fromkeys(MONITOR_COLUMNS, "0")
    fields |= {"time": utc(when), "pages": str(pages), "queued": str(queued)}
    return "\t".join(fields.values()) + "\n"
