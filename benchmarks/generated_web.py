"""A web of any size that is stored nowhere: 1,000 hosts on loopback, pages made on demand.

    python -m benchmarks.generated_web --pages 1000000      # prints the port, serves until SIGTERM

Page n of the web is page n // hosts of host n % hosts. What it holds depends on n alone. Size,
number of links and length of text of a page are drawn together from what 2,100 pages of the JDK's,
Python's and PostgreSQL's documentation have (SHARES: 14 KB and 40 links in the median, 40 KB and
130 links in the mean; cut at the 98th percentile). Of the links the first four lead down a tree
that reaches every page of the host, ten are its menu, the same on each page, one of ten of the
others leads to another host and the rest anywhere on the same one. Words follow Zipf's law.

With --validators each page has an ETag, and a conditional request for it the answer 304. One
process, asyncio, some 0.1 ms a page.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import signal
import socket
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

PERCENT = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98)
SHARES = {
    "bytes": (2071, 4272, 5638, 7364, 10021, 14024, 20116, 30431, 49000, 90523, 149621, 295400),
    "links": (0, 12, 14, 17, 26, 40, 59, 85, 135, 253, 475, 796),
    "text": (194, 884, 1305, 1852, 2574, 3626, 5302, 8351, 12994, 24392, 41147, 74370),
}
"""At each of PERCENT of the pages, smallest first."""
MENU, BRANCHES = 10, 4
_WORDS, _PARAGRAPHS, _PARAGRAPH_WORDS = 20_000, 512, 60
_PORTS_TRIED = 20


def address(number: int) -> str:
    """The loopback address of a host: 127.22.0.1 and so on, 250 in each last part."""
    third, last = divmod(number, 250)
    return f"127.22.{third}.{last + 1}"


def mixed(number: int) -> int:
    """64 bits that look random (splitmix64), the same in every process."""
    number = (number + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return number ^ (number >> 31)


def drawn(name: str, percent: float) -> int:
    """The value of SHARES at ``percent`` of the pages, on a straight line between two."""
    at = min(bisect_right(PERCENT, percent), len(PERCENT) - 1)
    low, high = PERCENT[at - 1], PERCENT[at]
    first, last = SHARES[name][at - 1 : at + 1]
    return round(first + (last - first) * (min(percent, high) - low) / (high - low))


class Web:
    """``pages`` pages on ``hosts`` hosts at ``port``."""

    def __init__(self, pages: int, hosts: int, port: int, *, validators: bool = False) -> None:
        self.pages, self.hosts, self.port = pages, hosts, port
        self.validators = validators
        words = random.Random(1)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]
        vocabulary = [
            "".join(words.choices(syllables, k=words.randint(1, 4))) for _ in range(_WORDS)
        ]
        zipf = list(accumulate(1 / (rank + 1) for rank in range(_WORDS)))
        self.paragraphs = [
            " ".join(words.choices(vocabulary, cum_weights=zipf, k=_PARAGRAPH_WORDS))
            for _ in range(_PARAGRAPHS)
        ]

    def of_host(self, host: int) -> int:
        """How many pages a host has."""
        return (self.pages - host + self.hosts - 1) // self.hosts

    def path(self, page: int) -> str:
        """Of a host's page: three folders deep, ten pages in each."""
        return f"/docs/area{page // 100}/part{page // 10}/page{page}.html" if page else "/"

    def page(self, host: int, page: int) -> bytes:
        """The body."""
        number = page * self.hosts + host
        seed = mixed(number)
        percent = seed % 9_800 / 100
        links = self._links(host, page, drawn("links", percent), seed)
        paragraphs = max(1, drawn("text", percent) // 400)
        text = [self.paragraphs[mixed(seed + at) % _PARAGRAPHS] for at in range(paragraphs)]
        parts = [
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Page {page} of host'
            f" {host}: {text[0][:40]}</title></head><body><ul>"
        ]
        parts += [f'<li><a href="{href}">{anchor}</a></li>\n' for href, anchor in links]
        parts.append("</ul>")
        parts += [f"<p>{paragraph}</p>\n" for paragraph in text]
        parts.append("</body></html>")
        body = "".join(parts).encode()
        short = drawn("bytes", percent) - len(body)  # the rest is markup
        return body + b"<div class='x'></div>\n" * max(0, short // 22)

    def _links(self, host: int, page: int, wanted: int, seed: int) -> list[tuple[str, str]]:
        own = self.of_host(host)
        below = range(BRANCHES * page + 1, min(own, BRANCHES * page + BRANCHES + 1))
        targets = [*below, *range(min(MENU, own))]
        links = [(self.path(target), f"page {target}") for target in targets]
        for at in range(len(links), wanted):
            draw = mixed(seed ^ at)
            if draw % 10:
                target = draw // 10 % own
                links.append((self.path(target), f"see page {target}"))
            else:
                other = draw // 10 % self.hosts
                target = draw // 10_000 % self.of_host(other)
                href = f"http://{address(other)}:{self.port}{self.path(target)}"
                links.append((href, f"host {other}"))
        return links

    def answer(self, host: int, target: str, request: bytes = b"") -> bytes:
        """The whole response."""
        name = "0" if target == "/" else target.rpartition("/page")[2].removesuffix(".html")
        if not name.isdecimal() or int(name) >= self.of_host(host):
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        if self.validators:
            tag = b'ETag: "%d-%b"\r\n' % (host, name.encode())
            head += tag
            if b"If-None-Match" + tag[4:] in request:
                return b"HTTP/1.1 304 Not Modified\r\n%b\r\n" % tag
        body = self.page(host, int(name))
        return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


class _Connection(asyncio.Protocol):
    def __init__(self, web: Web, host: int) -> None:
        self.web, self.host, self.received = web, host, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.received.endswith(b"\r\n\r\n"):
            target = self.received.split(b" ", 2)[1].decode("latin-1")
            request, self.received = self.received, b""
            self.transport.write(self.web.answer(self.host, target, request))


def _listen(hosts: int, wanted: int) -> list[socket.socket]:
    """One socket a host, all at one port: the one that is wanted, or any for 0."""
    for _ in range(1 if wanted else _PORTS_TRIED):
        sockets: list[socket.socket] = []
        port = wanted
        try:
            for host in range(hosts):
                sockets.append(socket.create_server((address(host), port), backlog=64))
                port = sockets[0].getsockname()[1]
        except OSError:
            for one in sockets:
                one.close()
        else:
            return sockets
    raise SystemExit(f"no port, or not that one, is free at all {hosts} addresses")


async def _serve(pages: int, hosts: int, port: int, *, validators: bool) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    sockets = _listen(hosts, port)
    web = Web(pages, hosts, sockets[0].getsockname()[1], validators=validators)
    for host, one in enumerate(sockets):
        await loop.create_server(lambda host=host: _Connection(web, host), sock=one)
    print(web.port, flush=True)
    await ended.wait()


@contextmanager
def serving(pages: int, hosts: int, port: int = 0, *, validators: bool = False) -> Iterator[int]:
    """Serve it in a process of its own, whose port is given."""
    command = [sys.executable, "-m", "benchmarks.generated_web"]
    command += [f"--pages={pages}", f"--hosts={hosts}", f"--port={port}"]
    command += ["--validators"] if validators else []
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--port", type=int, default=0, help="one that is free")
    parser.add_argument("--validators", action="store_true", help="ETags and 304")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_serve(options.pages, options.hosts, options.port, validators=options.validators))


if __name__ == "__main__":
    main()
