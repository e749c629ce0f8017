"""Faults of workers and their Redis: one after another, by chance, in a crawl.

    with FaultyCrawl(folder, Random(7), pages=600) as crawl:
        crawl.run(["kill", "rolled back"])     # until all have ended by themselves
        crawl.check_stores()                   # every page is stored, each once

Workers that end with status 75, and those that were killed, are started again, as a supervisor
does. Each worker has a way of its own to Redis, which can be cut.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from tests.support.servers.redis import RedisServer
from tests.support.servers.threaded import ThreadedServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

WORKERS = ("w1", "w2", "w3")
FAULTS = ("kill", "stop", "redis killed", "rolled back", "full", "slow", "network cut")
_ENDED_SECS = 240.0


class Relay(ThreadedServer):
    """A way to a server that can be cut, or take what is sent and pass nothing on; each message is
    ``latency`` seconds on its way."""

    def __init__(self, server: RedisServer, latency: float = 0.0, host: str = "127.32.0.2") -> None:
        super().__init__()
        self.latency = latency
        self.server, self.host, self.port = server, host, 0
        self._open, self._flows = True, asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    def cut(self) -> None:
        """Connections end, and new ones too."""
        self._open = False
        self._loop.call_soon_threadsafe(self._abort)

    def hold(self) -> None:
        """Connections stand, and nothing passes."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def mend(self) -> None:
        self._open = True
        self._loop.call_soon_threadsafe(self._flows.set)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def listen(self) -> list[asyncio.Server]:
        server = await asyncio.start_server(self.accept, self.host, 0)
        self.port = server.sockets[0].getsockname()[1]
        return [server]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            return
        try:
            answers, commands = await asyncio.open_connection(self.server.host, self.server.port)
        except OSError:
            return
        self._writers |= {writer, commands}
        ways = [self._pass_on(reader, commands), self._pass_on(answers, writer)]
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            self._writers -= {writer, commands}
            commands.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await asyncio.sleep(self.latency)
                await self._flows.wait()
                writer.write(data)
                await writer.drain()


class FaultyCrawl:
    """A crawl by three workers of ``pages`` pages in all. ``said`` is what was done to it,
    ``ended`` how workers ended that were started again; ``latency`` is on their ways to Redis."""

    def __init__(
        self,
        folder: Path,
        chance: Random,
        *,
        pages: int = 600,
        hosts: int = 20,
        latency: float = 0.0,
        **settings: str,
    ) -> None:
        self.folder, self.chance = folder, chance
        self.said: list[str] = []
        self.ended = Counter[str]()
        self.options: dict[str, str | int] = {
            "appendfsync": "everysec",
            "auto_aof_rewrite_percentage": 0,
            "maxmemory_policy": "noeviction",
        }
        self._pages, self._hosts, self._settings = pages, hosts, settings
        self._latency = latency
        self._stack = ExitStack()
        self._relays: dict[str, Relay] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.server = stack.enter_context(RedisServer("127.32.0.1", **self.options))
            hosts = stack.enter_context(
                Hosts(self._hosts, pages=self._pages // self._hosts, delay=0.01)
            )
            self.crew = stack.enter_context(Crew(hosts, self.server, self.folder, **self._settings))
            self.lease = float(self.crew.settings["LARM_LEASE_SECS"])
            for name in WORKERS:
                self._relays[name] = stack.enter_context(Relay(self.server, self._latency))
            stack.enter_context(self.server.written())
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def run(self, faults: list[str]) -> None:
        """Faults come while 10% to 65% of the pages are fetched."""
        chance, pages = self.chance, len(self.crew.hosts.urls)
        due = sorted(chance.uniform(0.1, 0.65) * pages for _ in faults)
        for name in WORKERS:
            self._start(name)
        for at, fault in zip(due, faults, strict=True):
            self._until(lambda at=at: len(self.crew.requests()) >= at)  # type: ignore[misc]
            self.said.append(f"{fault} at {len(self.crew.requests())}")
            getattr(self, "_" + fault.replace(" ", "_"))()
        self._until(self._all_ended)

    def check_stores(self) -> None:
        """As Crew.check_stores()."""
        self.crew.check_stores()

    # life

    def _start(self, name: str) -> None:
        self.crew.start(name, REDIS_URL=self._relays[name].url)

    def _all_ended(self) -> bool:
        return all(process.poll() == 0 for process in self.crew.workers.values())

    def _tend(self) -> None:
        for name, process in self.crew.workers.items():
            status = process.poll()
            if status not in (None, 0):
                assert status in (75, -signal.SIGKILL), self._last_words(name)
                self.ended[f"status {status}"] += 1
                self._start(name)

    def _last_words(self, name: str) -> str:
        return f"{name} ended: {self.said}\n{self.crew.said(name)[-3000:]}"

    def _until(self, true: object) -> None:
        end = time.monotonic() + _ENDED_SECS
        while not true() and not self._all_ended():  # type: ignore[operator]
            self._tend()
            if time.monotonic() > end:
                words = "\n".join(self._last_words(name) for name in WORKERS)
                raise AssertionError(f"they do not end: {words}")
            time.sleep(0.05)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._tend()
            time.sleep(0.02)

    def _some_secs(self, leases: float = 2.0) -> float:
        return self.chance.uniform(0.1, leases * self.lease)

    # faults

    def _kill(self) -> None:
        name = self.chance.choice(WORKERS)
        with suppress(ProcessLookupError, subprocess.SubprocessError):
            self.crew.workers[name].kill()

    def _stop(self) -> None:
        process = self.crew.workers[self.chance.choice(WORKERS)]
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP)
            self._wait(self._some_secs())
            process.send_signal(signal.SIGCONT)

    def _redis_killed(self) -> None:
        self.server.kill()
        self._wait(self._some_secs())
        self.server.start()

    def _rolled_back(self) -> None:
        self.server.lose(self.chance.uniform(0.1, 1.5))

    def _failed_over(self) -> None:
        """To a replica that is behind."""
        behind, master = self.chance.uniform(0.1, 1.5), self.server
        options = {"replicaof": f"{master.host} {master.port}", "appendonly": "no"}
        replica = RedisServer(master.host, **{**self.options, **options})
        self._stack.enter_context(replica)
        client = replica.client()
        self._until(lambda: client.info("replication")["master_link_status"] == "up")
        client.replicaof("NO", "ONE")
        client.config_set("appendonly", "yes")
        self._wait(behind)
        master.kill()
        self._until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
        replica.options.update(appendonly="yes")
        del replica.options["replicaof"]
        self._stack.enter_context(replica.written())
        self.server = replica
        for relay in self._relays.values():
            relay.server = replica

    def _full(self) -> None:
        client = self.server.client()
        client.config_set("maxmemory", 1)
        self._wait(self._some_secs())
        client.config_set("maxmemory", 0)

    def _slow(self) -> None:
        for _ in range(self.chance.randrange(2, 8)):
            self.server.pause()
            self._wait(self._some_secs(0.3))
            self.server.go_on()
            self._wait(0.05)

    def _network_cut(self) -> None:
        relay = self._relays[self.chance.choice(WORKERS)]
        self.chance.choice((relay.cut, relay.hold))()
        self._wait(self._some_secs())
        relay.mend()
