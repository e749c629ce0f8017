"""Hundreds or thousands of real HTTP hosts in one process of their own, some slow, some dead.

    with ManyHosts(300, mixed=True) as servers:
        servers.seeds                        # http://127.1.0.1:<port>/, http://127.1.0.2:..., ...
        logs = servers.stop()                # what each host saw, by the server's own clock

Each host listens at a loopback address of its own, all at one port. Its site is a binary tree of
``pages`` pages without robots.txt (404). In a mixed lot 10% answer after ``slow_secs`` and 5%
never, to any request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.servers.processes import OwnProcess

HEALTHY, SLOW, DEAD = "healthy", "slow", "dead"
_PORTS_TRIED = 20


def address(number: int) -> str:
    """The loopback address of a host: 127.1.0.1, 127.1.0.2, ..., 250 in each last part."""
    rest, last = divmod(number, 250)
    second, third = divmod(rest, 250)
    return f"127.{second + 1}.{third}.{last + 1}"


def kind_of(number: int, *, mixed: bool) -> str:
    """Two hosts in twenty are slow and one is dead, mixed among the others."""
    if not mixed:
        return HEALTHY
    return {3: SLOW, 11: SLOW, 7: DEAD}.get(number % 20, HEALTHY)


@dataclass
class HostLog:
    """The requests of one host. ``times`` are seconds of CLOCK_MONOTONIC, taken when the head of a
    request was complete; robots.txt counts. ``peak_requests`` and ``peak_connections``: at once, a
    request until its answer was sent or its connection ended."""

    address: str
    kind: str = HEALTHY
    times: list[float] = field(default_factory=list)
    peak_requests: int = 0
    peak_connections: int = 0

    def shortest_gap(self) -> float:
        """Seconds between two requests, at least; inf if there were not two."""
        return min((later - earlier for earlier, later in pairwise(self.times)), default=inf)

    def requests(self, start: float, end: float) -> int:
        """How many came from ``start`` on and before ``end``."""
        return sum(start <= time < end for time in self.times)


@dataclass(frozen=True)
class Seen:
    """The logs of all hosts about a crawl with ``gap`` seconds between two requests to a host."""

    hosts: list[HostLog]
    gap: float

    @property
    def begun(self) -> float:
        """The first request, by the hosts' clock."""
        return min(host.times[0] for host in self.hosts if host.times)

    def of(self, kind: str) -> list[HostLog]:
        """The hosts of one kind."""
        return [host for host in self.hosts if host.kind == kind]

    def rate(self, hosts: Sequence[HostLog], start: float, end: float) -> float:
        """Requests between two seconds of the crawl, as part of what the gap allows."""
        asked = sum(host.requests(self.begun + start, self.begun + end) for host in hosts)
        return asked * self.gap / (end - start) / len(hosts)


class ManyHosts(OwnProcess):
    """``hosts`` hosts with ``pages`` pages each; ``delay`` seconds until a healthy one answers.

    Without ``keep_alive`` each answer ends its connection.
    """

    def __init__(
        self,
        hosts: int,
        *,
        pages: int = 1000,
        mixed: bool = False,
        slow_secs: float = 10.0,
        delay: float = 0.0,
        keep_alive: bool = True,
    ) -> None:
        self.hosts = hosts
        self._log = Path(tempfile.mkdtemp(prefix="many_hosts")) / "log.json"
        arguments = [f"--hosts={hosts}", f"--pages={pages}", f"--slow-secs={slow_secs}"]
        arguments += [f"--delay={delay}", f"--log={self._log}", *(["--mixed"] if mixed else [])]
        arguments += [] if keep_alive else ["--close"]
        super().__init__("tests.support.servers.many_hosts", *arguments)

    @property
    def seeds(self) -> list[str]:
        """The start page of each host."""
        return [f"http://{address(number)}:{self.port}/" for number in range(self.hosts)]

    @property
    def restrict(self) -> str:
        """The scope of a crawl that may go to these hosts and no others."""
        return rf"http://127\.[0-9.]+:{self.port}/.*"

    def stop(self) -> list[HostLog]:
        """End the process; what it saw, host by host."""
        self.terminate()
        return [HostLog(**log) for log in json.loads(self._log.read_text())]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._log.unlink(missing_ok=True)
        self._log.parent.rmdir()


class Site:
    """A binary tree: page n links to 2n+1 and 2n+2; page 0 is the start page."""

    def __init__(self, pages: int, *, keep_alive: bool = True) -> None:
        self.pages, self.keep_alive = pages, keep_alive

    def page(self, target: str) -> bytes | None:
        """The page at a path; None where there is none."""
        name = target.removeprefix("/p").removesuffix(".html") if target != "/" else "0"
        if not name.isdecimal() or int(name) >= self.pages:
            return None
        number = int(name)
        below = [child for child in (2 * number + 1, 2 * number + 2) if child < self.pages]
        links = "".join(f'<li><a href="/p{child}.html">page {child}</a>' for child in below)
        text = f"<p>{number} is a page of this site. " + "Some text to read. " * 40
        return f"<title>Page {number}</title>{text}<ul>{links}</ul>".encode()

    def answer(self, target: str) -> bytes:
        """The whole response."""
        body = self.page(target)
        head = f"HTTP/1.1 {'404 Not Found' if body is None else '200 OK'}\r\n"
        head += "Content-Type: text/html; charset=utf-8\r\n"
        head += "" if self.keep_alive else "Connection: close\r\n"
        body = body or b"not here"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive; one request at a time: no client of ours pipelines."""

    def __init__(self, host: _Host) -> None:
        self.host = host
        self.received = b""
        self.asked = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.host.connect()

    def connection_lost(self, error: Exception | None) -> None:
        self.host.disconnect(asked=self.asked)
        self.asked = False

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self.received += data
        if not self.received.endswith(b"\r\n\r\n"):
            return
        target = self.received.split(b" ", 2)[1].decode("latin-1")
        self.received = b""
        self.asked = True
        self.host.ask(now)
        if self.host.delay == 0:
            self.answer(target)
        elif self.host.delay < inf:
            asyncio.get_running_loop().call_later(self.host.delay, self.answer, target)

    def answer(self, target: str) -> None:
        if self.asked:
            self.asked = False
            self.host.open_requests -= 1
            self.transport.write(self.host.site.answer(target))
            if not self.host.site.keep_alive:
                self.transport.close()


class _Host:
    def __init__(self, log: HostLog, site: Site, delay: float) -> None:
        self.log, self.site, self.delay = log, site, delay
        self.open_requests = self.open_connections = 0

    def connect(self) -> None:
        self.open_connections += 1
        self.log.peak_connections = max(self.log.peak_connections, self.open_connections)

    def disconnect(self, *, asked: bool) -> None:
        self.open_connections -= 1
        self.open_requests -= asked

    def ask(self, now: float) -> None:
        self.open_requests += 1
        self.log.times.append(now)
        self.log.peak_requests = max(self.log.peak_requests, self.open_requests)


def listen(addresses: Sequence[str]) -> list[socket.socket]:
    """One socket an address, all at one port that is free at each of them."""
    for _ in range(_PORTS_TRIED):
        sockets: list[socket.socket] = []
        port = 0
        try:
            for name in addresses:
                opened = socket.socket()
                sockets.append(opened)
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                opened.bind((name, port))
                opened.listen(16)
                port = opened.getsockname()[1]
        except OSError:
            for opened in sockets:
                opened.close()
        else:
            return sockets
    raise SystemExit(f"no port is free at all {len(addresses)} addresses")


async def _serve(options: argparse.Namespace) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    delays = {HEALTHY: options.delay, SLOW: options.slow_secs, DEAD: inf}
    site = Site(options.pages, keep_alive=not options.close)
    hosts = []
    for number, opened in enumerate(listen([address(n) for n in range(options.hosts)])):
        kind = kind_of(number, mixed=options.mixed)
        host = _Host(HostLog(address(number), kind), site, delays[kind])
        hosts.append(host)
        await loop.create_server(lambda host=host: _Connection(host), sock=opened)
    print(opened.getsockname()[1], flush=True)
    await ended.wait()
    options.log.write_text(json.dumps([asdict(host.log) for host in hosts]))


def main() -> None:
    """Prints the port, serves until SIGTERM, then writes the log."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--slow-secs", type=float, default=10.0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--close", action="store_true")
    parser.add_argument("--log", type=Path, required=True)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
