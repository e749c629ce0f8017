"""Which crawl runs when: ten crawls for a week, clock changes, kills, windows, a full disk.

Time and processes are made up here; test_server.py has real ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from larmspider.errors import ConfigError, HttpError
from larmspider.files import lock
from larmspider.formatting import utc
from larmspider.server.api.api import summary_of
from larmspider.server.api.crawls import By, Crawls
from larmspider.server.audit import Audit
from larmspider.server.config.secrets import Secrets
from larmspider.server.config.server_settings import Node, ServerSettings
from larmspider.server.home import Home
from larmspider.server.runs.nodes import NodeClient, Nodes
from larmspider.server.runs.runs import CrawlRuns, cut_log, read_runs, tail_of
from larmspider.status.totals import Totals
from larmspider.workdir.manifest import FORMAT, LOCK, MANIFEST
from tests.support.crawl_machine import BEGIN, DAY, HOUR, FakeProcess, KilledError, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    Home.open(tmp_path)
    return Machine(tmp_path)


def crawl(machine: Machine, name: str, run: str = "", more: str = "", **limits: object) -> None:
    text = f"seeds = ['http://{name}/']\n{more}\n[schedule]\nrun = '{run}'\n"
    text += "".join(f"{key} = {value!r}\n" for key, value in limits.items())
    (machine.home / "crawls" / f"{name}.toml").write_text(text)


def local(time: float, zone: str) -> str:
    return datetime.fromtimestamp(time, ZoneInfo(zone)).strftime("%d %H:%M")


def test_threads_share_the_state_of_a_crawl(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that reads the state of a new crawl beside a tick changes nothing for it."""
    manager, found = machine.manager(), list[CrawlRuns]()

    def read(folder: Path) -> CrawlRuns:
        if not found:
            found.append(CrawlRuns())
            found.append(manager.state_of("wiki"))  # another thread
        return CrawlRuns()

    monkeypatch.setattr("larmspider.server.runs.manager.read_runs", read)
    assert manager.state_of("wiki") is found[1]


def test_a_crawl_that_cannot_be_deleted_says_so(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl(machine, "wiki")
    data = machine.home / "data" / "wiki"
    (data / "index").mkdir(parents=True)
    acts = Crawls(machine.manager(), Audit(machine.home))

    (data / "store.log").write_bytes(b"page")
    remove = os.rmdir

    def refuse(path: Any, *, dir_fd: int | None = None) -> None:
        if path == "index":
            raise PermissionError(13, "Permission denied", path)
        remove(path, dir_fd=dir_fd)

    monkeypatch.setattr("os.rmdir", refuse)
    with pytest.raises(HttpError, match=rf"not all of {data}: Permission denied"):
        acts.delete("wiki", "wiki", By("anna"), pages=True)
    assert [path.name for path in data.iterdir()] == ["index"], "all else is gone"


def test_a_crawl_is_deleted_while_another_process_tidies(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages are gone then, too."""
    crawl(machine, "wiki")
    data = machine.home / "data" / "wiki"
    data.mkdir(parents=True)
    for name in ("a.log", "b.log", "c.log"):
        (data / name).write_bytes(b"page")
    remove = os.unlink

    def tidied(path: Any, *, dir_fd: int | None = None) -> None:
        remove(path, dir_fd=dir_fd)
        if path in ("a.log", "b.log", "c.log"):
            raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("os.unlink", tidied)
    acts = Crawls(machine.manager(), Audit(machine.home))
    assert "with its pages" in acts.delete("wiki", "wiki", By("anna"), pages=True)
    assert not data.exists()


def test_the_last_run_on_a_node(machine: Machine) -> None:
    """Names of crawls may begin alike."""
    running = [{"id": "larm-wiki-3-0"}, {"id": "larm-wiki-2-7-0"}, {"id": "larm-hr-9-0"}]

    class Client(NodeClient):
        def read(self, call: str, **query: str) -> dict[str, Any]:
            return {"pending": [], "running": running}

    client = Client("a", Node(url="http://a:6800", directory="/data"), "")
    nodes = Nodes(Home.open(machine.home), ServerSettings(), Secrets(machine.home))
    names = ("wiki", "wiki-2", "hr", "news")
    assert [nodes._last(client, name) for name in names] == [3, 7, 9, 0]


def test_ten_crawls_for_a_week(machine: Machine) -> None:
    """Each runs when it should, once, also in the night in which the clock changes."""
    machine.now = datetime(2026, 3, 25, 23, 0, tzinfo=UTC).timestamp()
    plans = {
        "a": ("every day at 02:00", "Europe/Berlin", 7),
        "b": ("every day at 02:30", "Europe/Berlin", 7),
        "c": ("every day at 03:00", "Europe/Berlin", 7),
        "d": ("every 6 hours", "UTC", 28), "e": ("every weekday at 22:30", "UTC", 5),
        "f": ("every sunday at 04:00", "Europe/Berlin", 1),
        "g": ("every hour", "Europe/Berlin", 168), "h": ("30 12 * * 1", "America/New_York", 1),
        "i": ("every month on day 28 at 03:00", "UTC", 1), "j": ("every 30 minutes", "UTC", 336),
    }  # fmt: skip
    for name, (run, zone, _) in plans.items():
        crawl(machine, name, run, time_zone=zone)
    manager = machine.manager(parallel=8)
    machine.run(manager, 7 * DAY + HOUR, 600.0)
    for name, (_, zone, wanted) in plans.items():
        begun = [time for one, time, _ in machine.started if one == name]
        assert wanted <= len(begun) <= wanted + 2, name
        if name in "abc":
            assert [local(time, zone)[:2] for time in begun] == [
                "26", "27", "28", "29", "30", "31", "01",
            ]  # fmt: skip
    assert [refresh for name, _, refresh in machine.started if name == "a"] == ["", *["due"] * 6]
    assert machine.together <= 8
    assert len(manager.state_of("j").runs) == 50  # the bound of the history


def test_missed_runs(machine: Machine) -> None:
    """A server that was away for days runs each once, or waits for the next time; a schedule that
    is new, or has changed, was not missed."""
    crawl(machine, "once", "every hour")
    crawl(machine, "skips", "every hour", missed="skip")
    machine.run(machine.manager(), 60)
    machine.now += 3 * DAY + 1_000
    manager = machine.manager()
    machine.run(manager, 60)
    assert [name for name, *_ in machine.started] == ["once"]
    assert manager.state_of("once").run is not None
    assert manager.state_of("once").run.why == "missed"  # type: ignore[union-attr]
    crawl(machine, "skips", "every 5 minutes")
    machine.run(manager, 120)
    assert [name for name, *_ in machine.started] == ["once"]


def test_a_clock_that_was_wrong(machine: Machine) -> None:
    """A clock that was a year ahead puts off neither the schedule nor a retry. One that is set back
    by an hour repeats no run."""
    crawl(machine, "daily", "every day at 02:00")
    machine.now += 365 * DAY
    machine.run(machine.manager(), DAY)
    machine.now -= 366 * DAY
    begun, manager = len(machine.started), machine.manager()
    manager.state_of("daily").retry_at = machine.now + 365 * DAY
    machine.run(manager, 60)
    assert manager.state_of("daily").run is not None
    machine.run(manager, DAY)
    assert [run.why for run in manager.state_of("daily").runs[-2:]] == ["continue", "schedule"]
    machine.now -= HOUR
    machine.run(manager, 2 * HOUR)
    assert len(machine.started) == begun + 2


def test_thirty_kills(machine: Machine) -> None:
    """Servers and crawls are killed at any moment: nothing runs twice, nothing is forgotten."""
    for name in ("a", "b", "c"):
        crawl(machine, name, "every hour")
    for kill in range(30):
        machine.dies = kill % 5 == 4
        manager = machine.manager(parallel=2)
        manager.adopt()
        try:
            machine.run(manager, 1_000 + kill * 37)
        except KilledError:
            machine.dies = False
        if kill % 3 == 0:
            for process in machine.processes.values():
                if process.status() is None:
                    process.code = -9
    machine.dies = False
    manager = machine.manager(parallel=2)
    adopted = manager.adopt()
    assert sorted(adopted) == sorted(machine.running())
    machine.run(manager, 2 * HOUR)
    assert machine.together <= 2
    for name in ("a", "b", "c"):
        begun = [time for one, time, _ in machine.started if one == name]
        assert all(b - a >= 0 for a, b in pairwise(begun))
        assert begun[-1] > machine.now - 2 * HOUR
        numbers = [run.number for run in manager.state_of(name).runs]
        assert numbers == sorted(set(numbers))


def test_a_server_that_is_killed_before_the_process_starts(machine: Machine) -> None:
    """The run that it had noted is begun by the next one."""
    crawl(machine, "a")
    manager = machine.manager()
    manager.start("a", "me")

    def nothing(*_: object) -> FakeProcess:
        raise KilledError

    manager._launcher = type("Dead", (), {"start": nothing, "adopt": machine.adopt})()
    with pytest.raises(KilledError):
        asyncio.run(manager.tick())
    again = machine.manager()
    assert again.adopt() == []
    machine.run(again, 60)
    assert [name for name, *_ in machine.started] == ["a"]


def test_a_file_that_is_renamed_while_its_crawl_runs(machine: Machine) -> None:
    """The crawl is shown, counts, and can be stopped, also by the next server; then it is gone."""
    crawl(machine, "a")
    manager = machine.manager(parallel=1)
    manager.start("a", "operator")
    machine.run(manager, 120.0)
    (machine.home / "crawls" / "a.toml").rename(machine.home / "crawls" / "b.toml")
    manager = machine.manager(parallel=1)
    assert manager.adopt() == ["a"]
    assert "the file is gone, and its crawl still runs" in manager.entries()["a"].problem
    manager.start("b", "operator")
    machine.run(manager, 120.0)
    assert manager.running == ["a"]
    assert "a stops" in manager.stop("a")
    machine.run(manager, 120.0)
    assert manager.running == ["b"]
    assert list(manager.entries()) == ["b"]
    assert read_runs(manager.home.runs_of("a")).runs[-1].outcome == "shutdown"


def test_watch_goes_on_until_somebody_stops_it(machine: Machine) -> None:
    """First the crawl, then visits for ever; a refusal is tried again, later and later."""
    crawl(machine, "w", "watch")
    manager = machine.manager()
    machine.run(manager, 1_400)
    assert [refresh for *_, refresh in machine.started] == ["", "watch", "watch"]
    machine.processes["w"].code, machine.said = 2, "no such host"
    machine.run(manager, 60)
    assert manager.state_of("w").runs[-1].said == "no such host"
    begun = len(machine.started)
    assert begun == 3
    machine.run(manager, 120)
    assert len(machine.started) == begun + 1
    assert "stops" in manager.stop("w")
    machine.run(manager, DAY)
    assert len(machine.started) == begun + 1
    manager.start("w", "me")
    machine.run(manager, 60)
    assert len(machine.started) == begun + 2


def test_a_crawl_that_was_killed_is_continued(machine: Machine) -> None:
    """After a minute, then two, then four; a refused run is not repeated."""
    crawl(machine, "a")
    manager = machine.manager()
    manager.start("a", "me")
    machine.run(manager, 60)
    for number in range(4):
        machine.processes["a"].code = -9
        machine.run(manager, 60 * 2**number + 61)
        assert len(machine.started) == number + 2
    machine.processes["a"].code = 2
    machine.run(manager, DAY)
    assert len(machine.started) == 5
    assert manager.state_of("a").runs[-1].outcome == "refused"


def test_a_visit_that_is_refused_since_the_crawl_has_not_ended(machine: Machine) -> None:
    """It goes on without the visit."""
    crawl(machine, "a")
    manager = machine.manager()
    manager.start("a", "me")
    machine.run(manager, 700)
    manager.start("a", "me", "all")
    machine.run(manager, 60)
    machine.processes["a"].code = 2
    machine.said = "refresh=all: the crawl in /x has not ended yet; run the same command"
    machine.run(manager, 120)
    assert [refresh for *_, refresh in machine.started] == ["", "all", ""]


def test_windows_and_turns(machine: Machine) -> None:
    """A run stops at the end of its window and goes on in the next; others wait for a turn."""
    machine.secs = 10 * HOUR
    machine.now = BEGIN + 21 * HOUR
    crawl(machine, "night", window=[22, 6])
    for name in ("x", "y"):
        crawl(machine, name)
    manager = machine.manager(parallel=2)
    assert manager.start("night", "me") == "night waits for its window"
    manager.start("x", "me")
    machine.run(manager, 60)
    machine.now += 1
    manager.start("y", "me")
    assert manager.queue == ["night", "y"]
    machine.run(manager, 2 * HOUR)
    assert [name for name, *_ in machine.started] == ["x", "y"]
    assert "no longer waits" in manager.stop("night")
    machine.run(manager, 9 * HOUR)
    manager.start("night", "me")
    machine.run(manager, 16 * HOUR)
    nights = [local(time, "UTC") for name, time, _ in machine.started if name == "night"]
    assert nights == ["02 22:00"]
    machine.run(manager, 31 * HOUR)
    nights = [local(time, "UTC") for name, time, _ in machine.started if name == "night"]
    assert nights == ["02 22:00", "03 22:00"]
    assert [run.why for run in manager.state_of("night").runs] == ["operator", "window"]


def test_times_outside_of_the_window(machine: Machine) -> None:
    """They wait for the window, or are skipped; the next run that is shown says so."""
    machine.now = datetime(2026, 10, 24, 12, 0, tzinfo=UTC).timestamp()
    zone = "Europe/Berlin"
    crawl(machine, "noon", "every day at 12:00", time_zone=zone, window=[22, 6])
    crawl(machine, "skips", "every 6 hours", time_zone=zone, window=[18, 1], missed="skip")
    manager = machine.manager()
    machine.run(manager, 60)

    def shown(name: str) -> str:
        return local(manager.next_run(manager.entry(name)) or 0, zone)

    assert (shown("noon"), shown("skips")) == ("25 22:00", "24 18:00")
    machine.run(manager, 23 * HOUR)  # 25 October, 12:00: the clock was set back
    assert (shown("noon"), shown("skips")) == ("25 22:00", "25 18:00")
    machine.run(manager, 2 * DAY)
    begun = [(name, local(time, zone)) for name, time, _ in machine.started]
    assert begun == [
        ("skips", "24 18:00"), ("skips", "25 00:00"), ("skips", "25 18:00"), ("noon", "25 22:00"),
        ("skips", "26 00:00"), ("skips", "26 18:00"), ("noon", "26 22:00"), ("skips", "27 00:00"),
    ]  # fmt: skip


def test_a_full_disk_pauses_crawls(machine: Machine) -> None:
    """None begins; those that run are paused once, and go on once there is room again."""
    for name in ("a", "b"):
        crawl(machine, name)
    manager = machine.manager(min_free_bytes=1_000)
    manager.start("a", "me")
    machine.run(manager, 60)
    machine.free = 999
    machine.run(manager, 180)
    manager.start("b", "me")
    machine.run(manager, 60)
    assert "999 bytes" in manager.disk_full
    assert machine.acts == [("a", "pause")]
    assert machine.running() == ["a"]
    machine.free = 1_050
    machine.run(manager, 60)
    assert machine.running() == ["a"]
    machine.free = 2_000
    machine.run(manager, 60)
    assert machine.acts == [("a", "pause"), ("a", "resume")]
    assert machine.running() == ["a", "b"]


def test_room_on_the_disk_resumes_no_crawl_that_an_operator_has_paused(machine: Machine) -> None:
    crawl(machine, "a")
    manager = machine.manager(min_free_bytes=1_000)
    manager.start("a", "me")
    machine.run(manager, 60)
    directory = machine.home / "data" / "a"
    directory.mkdir(parents=True)
    Totals(paused=True).write(directory)
    for machine.free in (999, 2_000):
        machine.run(manager, 60)
    assert machine.acts == []


def test_the_state_and_the_sentence_of_a_crawl_agree(machine: Machine) -> None:
    """From its start to its end, paused by an operator and by the disk in between."""
    crawl(machine, "a")
    manager = machine.manager(min_free_bytes=1_000)
    directory = machine.home / "data" / "a"

    def told() -> tuple[str, str]:
        row = summary_of(manager, manager.entry("a"))
        return row.state, row.sentence

    assert told() == ("new", "Not begun yet.")
    manager.start("a", "me")
    assert told() == ("waiting", "It waits for its turn.")
    machine.run(manager, 60)
    assert told() == ("running", "It starts.")
    directory.mkdir(parents=True)
    began, ended = utc(machine.now), utc(machine.now + 60)
    manifest = {"format": FORMAT, "began": began}
    (directory / MANIFEST).write_text(json.dumps(manifest))
    with lock(directory / LOCK):
        assert told() == ("running", f"Running since {began}.")
        Totals(paused=True).write(directory)
        assert told() == ("paused", f"Paused. Running since {began}.")
        Totals().write(directory)
        machine.free = 999
        machine.run(manager, 60)
        state, sentence = told()
        assert (state, sentence[:17]) == ("paused", "Paused. 999 bytes")
        machine.free = 2_000
        machine.run(manager, 60)
        manager.stop("a")
        assert told() == ("stopping", "It stops once its fetches in flight have ended.")
        manager.state_of("a").held = False
    manifest |= {"ended": ended, "end": "finished"}
    (directory / MANIFEST).write_text(json.dumps(manifest))
    assert told() == ("stopping", f"Finished at {ended}.")
    machine.now += 1_000
    machine.run(manager, 60)
    assert told() == ("ended", f"Finished at {ended}.")


def test_a_crawl_that_was_killed_says_what_follows(machine: Machine) -> None:
    """The server continues it, unless an operator has stopped it."""
    crawl(machine, "a")
    manager = machine.manager()
    began, directory = utc(machine.now), machine.home / "data" / "a"
    directory.mkdir(parents=True)
    (directory / MANIFEST).write_text(json.dumps({"format": FORMAT, "began": began}))
    state, entry = manager.state_of("a"), manager.entry("a")
    state.retry_at = machine.now + 60
    at = utc(state.retry_at)[:19]
    assert summary_of(manager, entry).sentence.endswith(f". The server continues it at {at}Z.")
    state.held = True
    assert summary_of(manager, entry).sentence.endswith(
        f"began at {began}. Start continues it from its last checkpoint."
    )


def test_what_cannot_be_done(machine: Machine) -> None:
    """Each is refused in words."""
    crawl(machine, "a")
    (machine.home / "crawls" / "bad.toml").write_text("seeds = 1")
    manager = machine.manager()
    for act, told in (
        (lambda: manager.start("nix", "me"), "there is no crawl 'nix'"),
        (lambda: manager.start("bad", "me"), "bad.toml:1: seeds"),
        (lambda: manager.stop("a"), "does not run, and does not wait"),
        (lambda: manager.start("a", "me", "all"), "has not finished yet"),
        (
            lambda: manager.start("a", "me") and manager.start("a", "me"),
            "waits for its turn already",
        ),
    ):
        with pytest.raises(ConfigError, match=told):
            act()
    machine.run(manager, 60)
    with pytest.raises(ConfigError, match="runs already"):
        manager.start("a", "me")
    machine.processes["a"].signal(signal.SIGTERM)


def test_a_crawl_that_the_system_has_stopped_continues(machine: Machine) -> None:
    """By a signal of neither operator nor window, such as when the machine shuts down."""
    crawl(machine, "a")
    manager = machine.manager()
    manager.start("a", "me")
    machine.run(manager, 10)
    machine.processes["a"].signal(signal.SIGTERM)
    machine.run(manager, 120)
    assert manager.running == ["a"]
    assert [run.outcome for run in manager.state_of("a").runs] == ["shutdown"]
    manager.stop("a")
    machine.run(manager, 600)
    assert manager.running == []


def test_state_and_logs_have_a_bound(tmp_path: Path) -> None:
    """A damaged state counts as absent, but for the numbers of logs; a long log keeps its end, and
    what is appended to it."""
    log = tmp_path / "7.log"
    with log.open("ab") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(10_000)))
        file.flush()
        cut_log(log, 20_000)
        file.write(b"more\n")
    assert log.stat().st_size < 12_000
    assert log.read_text().splitlines()[-2:] == ["line 9999", "more"]
    assert log.read_text().startswith("line ")
    assert tail_of(tmp_path, 7, 20) == "line 9999\nmore\n"
    (tmp_path / "state.json").write_text("{")
    assert read_runs(tmp_path) == CrawlRuns(last=7)
