"""Hosts that write down each request: who asked for what, when it came and when it was over.

    with Hosts(40, pages=50, delay=0.05) as hosts:
        hosts.seed                       # http://127.32.1.1:<port>/
        hosts.requests()                 # so far, by the hosts' own clock (CLOCK_MONOTONIC)

Each host listens at a loopback address of its own, all at one port, in a process of its own. Its
pages are a binary tree, and so are the hosts: a page also links to the pages with its number on two
other hosts, so all are found from one seed, and most of them twice. There is no robots.txt (404).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from math import nan
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.support.servers.many_hosts import listen
from tests.support.servers.processes import OwnProcess
from tests.support.servers.scripted import Route, ScriptedServer


def address(number: int) -> str:
    """127.32.1.1, 127.32.1.2, ..."""
    return f"127.32.{number // 250 + 1}.{number % 250 + 1}"


@dataclass(frozen=True)
class Asked:
    """``who`` is the header From. ``begin``: the head of the request was complete; ``end``: its
    answer was about to be sent (``answered``), or its connection lost. ``process`` and ``turn`` are
    of the header Turn (turns.py)."""

    host: str
    path: str
    who: str
    begin: float
    end: float
    process: int = 0
    turn: float = nan
    answered: bool = True


class Hosts(OwnProcess):
    """``delay`` seconds until a page is answered."""

    def __init__(self, hosts: int, *, pages: int, delay: float) -> None:
        self.hosts, self.pages = hosts, pages
        self._folder = tempfile.TemporaryDirectory(prefix="hosts-")
        self.log = Path(self._folder.name) / "log"
        arguments = [f"--hosts={hosts}", f"--pages={pages}", f"--delay={delay}"]
        super().__init__("tests.support.workers.hosts", *arguments, f"--log={self.log}")

    @property
    def seed(self) -> str:
        return f"http://{address(0)}:{self.port}/"

    @property
    def restrict(self) -> str:
        return rf"http://127\.32\.[0-9.]+:{self.port}/.*"

    @property
    def urls(self) -> set[str]:
        """All pages."""
        paths = ["/", *(f"/p{number}" for number in range(1, self.pages))]
        roots = [f"http://{address(number)}:{self.port}" for number in range(self.hosts)]
        return {root + path for root in roots for path in paths}

    def requests(self) -> list[Asked]:
        """Those that are over, in the order of their ends."""
        lines = self.log.read_text().split("\n")[:-1]
        return [Asked(*json.loads(line)) for line in lines]

    def url(self, asked: Asked) -> str:
        return f"http://{asked.host}:{self.port}{asked.path}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._folder.cleanup()


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive; one request at a time: no client of ours pipelines."""

    def __init__(self, number: int, options: argparse.Namespace, log: IO[str]) -> None:
        self.number, self.options, self.log = number, options, log
        self.received = b""
        self.asked: tuple[dict[str, str], float] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self.received += data
        if not self.received.endswith(b"\r\n\r\n"):
            return
        lines = self.received.decode("latin-1").split("\r\n")
        self.received = b""
        heads = {
            name.lower(): value.strip() for name, _, value in (h.partition(":") for h in lines)
        }
        self.asked = heads | {":path": lines[0].split()[1]}, now
        asyncio.get_running_loop().call_later(self.options.delay, self.answer)

    def answer(self) -> None:
        if self.asked is not None:
            response = self.response(self.asked[0][":path"])
            self.over(answered=True)  # else the client might have it before
            self.transport.write(response)

    def response(self, path: str) -> bytes:
        number = 0 if path == "/" else int(path[2:]) if path[2:].isdecimal() else -1
        if not 0 <= number < self.options.pages:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        port = self.transport.get_extra_info("sockname")[1]
        links = [f"/p{below}" for below in _below(number, self.options.pages)]
        links += [
            f"http://{address(host)}:{port}/{f'p{number}' if number else ''}"
            for host in _below(self.number, self.options.hosts)
        ]
        body = f"<title>{number}</title>" + "".join(f'<a href="{link}">x</a>' for link in links)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + body).encode()

    def connection_lost(self, error: Exception | None) -> None:
        if self.asked is not None:
            self.over(answered=False)

    def over(self, *, answered: bool) -> None:
        assert self.asked is not None
        heads, begin = self.asked
        self.asked = None
        process, turn = heads.get("turn", "0 nan").split()
        row = [address(self.number), heads[":path"], heads.get("from", ""), begin]
        row += [time.monotonic(), int(process), float(turn), answered]
        self.log.write(json.dumps(row) + "\n")


def _below(number: int, count: int) -> list[int]:
    """The numbers below ``number`` in a binary tree of ``count``."""
    return [below for below in (2 * number + 1, 2 * number + 2) if below < count]


async def _serve(options: argparse.Namespace) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    with options.log.open("w", buffering=1) as log:
        sockets = listen([address(number) for number in range(options.hosts)])
        for number, opened in enumerate(sockets):
            await loop.create_server(
                lambda number=number: _Connection(number, options, log), sock=opened
            )
        print(sockets[0].getsockname()[1], flush=True)
        await ended.wait()


def main() -> None:
    """Prints the port and serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--delay", type=float, required=True)
    parser.add_argument("--log", type=Path, required=True)
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()


# Sites of many hosts whose pages link to each other's, and to pages that are gone.


HTML = {"Content-Type": "text/html"}


class CrossLinked:
    """Host k's page n links to page n + 1 of its own, to page n of the next host, and to /gone of
    the one after; its start page to all of its pages, to all hosts, and out of the scope."""

    def __init__(self, hosts: int, *, pages: int, net: str) -> None:
        self._addresses = [f"{net}.{number + 1}" for number in range(hosts)]
        self._pages = pages
        self._stack = ExitStack()
        self.servers: list[ScriptedServer] = []

    @property
    def seed(self) -> str:
        return self.servers[0].url("/")

    @property
    def restrict(self) -> str:
        return (
            "http://" + self._addresses[0].rpartition(".")[0].replace(".", r"\.") + r"\.[0-9]+:.*"
        )

    @property
    def gone(self) -> list[str]:
        """Linked from the pages of another host."""
        return [server.url("/gone") for server in self.servers]

    def __enter__(self) -> Self:
        for address in self._addresses:
            self.servers.append(self._stack.enter_context(ScriptedServer({}, address)))
        for number, server in enumerate(self.servers):
            server.routes.update(self._routes(number))
        return self

    def _routes(self, number: int) -> dict[str, Route]:
        around = [*self.servers[number + 1 :], *self.servers[: number + 1]]
        pages = range(self._pages)
        links = [f"/{n}" for n in pages] + [server.url("/") for server in around]
        links += ["http://elsewhere.invalid/"]
        start = "".join(f"<a href='{link}'>to {link}</a>" for link in links)
        routes: dict[str, Route] = {
            "/": (200, HTML, f"<title>start {number}</title>{start}".encode()),
            "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /private"),
        }
        for n in pages:
            text = f"<title>page {n} of {number}</title>same words on all pages"
            text += f"<a href='/{(n + 1) % self._pages}'>next</a><a href=/private>no</a>"
            text += f"<a href='{around[0].url(f'/{n}')}'>beside</a>"
            text += f"<a href='{around[1].url('/gone')}'>lost {n}</a>"
            routes[f"/{n}"] = (200, HTML, text.encode())
        routes["/same"] = (200, HTML, b"the same")
        return routes

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
