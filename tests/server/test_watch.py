"""What waits for a person, over all crawls: shown, told once, told again when it comes back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from larmspider.errors import ConfigError
from larmspider.extensions.notify import TOLD
from larmspider.learned.deletes.notes import Notice
from larmspider.server.runs.watch import RETRY_SECS, Watch
from larmspider.status.totals import TOTALS_FILE
from tests.support.crawl_machine import Machine


class Watched:
    """A machine whose notices a real command writes to a file."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder / "home")
        self.manager = self.machine.manager()
        self._file = folder / "told"
        self._command = f"sh -c 'cat >> {self._file}'"
        self.watch = self.start()
        (folder / "home" / "crawls").mkdir(parents=True, exist_ok=True)

    def start(self) -> Watch:
        return Watch(self.manager, self._command, clock=lambda: self.machine.now)

    def write(self, text: str = "seeds = ['http://w/']\n", name: str = "wiki") -> None:
        self.manager.home.file_of(name).write_text(text)

    def look(self) -> list[str]:
        """The messages of a look after a tick."""
        before = len(self._lines())

        async def look() -> None:
            await self.manager.tick()
            await self.watch.look()
            await self.watch.close()

        asyncio.run(look())
        return self._lines()[before:]

    def _lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_wrong_file_is_told_once(watched: Watched) -> None:
    """Also after a restart of the server; again if it comes back."""
    watched.write("sedes = 1\n")
    told = watched.look()
    assert len(told) == 1
    assert told[0].startswith("wiki: ")
    assert "sedes" in told[0]
    assert watched.look() == []
    watched.watch = watched.start()
    assert watched.look() == []
    assert list(watched.watch.waits) == ["file wiki"]
    watched.write()
    assert watched.look() == []
    assert watched.watch.waits == {}
    watched.write("sedes = 2\n")
    assert len(watched.look()) == 1


def test_runs_and_the_disk(watched: Watched) -> None:
    watched.write()
    watched.look()
    watched.machine.said = "no such setting"
    watched.manager.start("wiki", "ada")
    assert watched.look() == []
    watched.machine.processes["wiki"].code = 2
    assert watched.look() == ["wiki: refused by its settings: no such setting"]
    watched.machine.free = 0
    assert [line.partition(" of disk")[2][:9] for line in watched.look()] == [" are free"]
    watched.machine.free = 10**12
    watched.manager.start("wiki", "ada")
    assert watched.look() == []
    assert watched.watch.waits == {}


def test_events_of_a_crawl(watched: Watched) -> None:
    """They are told with its name, unless the crawl tells them by itself; damage is no event."""
    directory = watched.machine.home / "data" / "wiki"
    directory.mkdir(parents=True)
    (directory / TOLD).write_text(json.dumps({"login w:80": [1.0, "w: login expired"]}))
    watched.write()
    assert watched.look() == ["wiki: w: login expired"]
    (directory / TOLD).write_text("{dam")
    assert watched.look() == []
    assert watched.watch.waits == {}
    (directory / TOLD).write_text(json.dumps({"login w:80": [1.0, "w: login expired"]}))
    watched.write("seeds = ['http://w/']\n[settings]\nLARM_NOTIFY = 'true'\n")
    assert watched.look() == []
    assert len(watched.watch.waits) == 1


def test_hosts_that_were_given_up(watched: Watched) -> None:
    """Told in the first run that gave up hosts; not in the next one, which does so, too."""
    directory = watched.machine.home / "data" / "wiki"
    directory.mkdir(parents=True)

    def run(given_up: int) -> list[str]:
        watched.manager.start("wiki", "ada")
        told = watched.look()
        counters = {"larm/frontier/hosts_given_up": given_up}
        (directory / TOTALS_FILE).write_text(json.dumps({"runs": 1, "counters": counters}))
        told += watched.look()
        watched.machine.now += 1_000
        return told + watched.look()

    watched.write()
    assert run(0) == []
    assert run(2) == ["wiki: 2 hosts were given up until the next run"]
    assert run(3) == []
    assert run(3) == []
    assert watched.watch.waits == {}
    assert run(4) == ["wiki: 1 host was given up until the next run"]


def test_a_notice_that_fails_is_tried_again(watched: Watched) -> None:
    sent = list[str]()

    async def send(_: str, notice: Notice) -> None:
        sent.append(notice.message)
        if len(sent) == 1:
            raise OSError("away")

    watched.watch = Watch(watched.manager, "true", clock=lambda: watched.machine.now, send=send)
    watched.write("x")
    watched.look()
    watched.look()
    assert len(sent) == 1
    watched.machine.now += RETRY_SECS
    watched.look()
    watched.look()
    assert len(sent) == 2


def test_a_bad_command_is_refused(watched: Watched) -> None:
    with pytest.raises(ConfigError, match="expected a command, or a URL"):
        Watch(watched.manager, "mail 'x")
