"""A site of 1,000 pages over 40 hosts, whose every byte is known beforehand.

Page n lies on host n mod 40 and links to pages 2n+1 and 2n+2, so that all are found from page 0,
and to others at random. Some links lead to redirects, to pages that are missing or broken, and to
what robots.txt forbids.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.servers.threaded import ThreadedServer

HOSTS = 40
PAGES = 1000
REDIRECTS = 60
MISSING = 40
BROKEN = 3
PRIVATE = 20
_HTML = "text/html; charset=utf-8"
_ROBOTS = b"User-agent: *\nDisallow: /private/\n"


@dataclass(slots=True)
class Resolution:
    """What a URL is answered with, and the links that a crawler finds in it, in order."""

    status: int
    body: bytes
    links: list[str] = field(default_factory=list)
    location: str = ""


class Site(ThreadedServer):
    """Serves it from one thread with an event loop. ``seen`` counts what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, Resolution] = {}
        self.private: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.in_mid_body: Callable[[], None] | None = None
        """Called once by the server when half of some body is sent."""
        self._hosts: list[str] = []

    @property
    def start(self) -> str:
        """The seed."""
        return self._page(0)

    @property
    def pages(self) -> dict[str, Resolution]:
        """What is stored in the index: answered with 200."""
        return {url: answer for url, answer in self.answers.items() if answer.status == 200}

    def _page(self, number: int) -> str:
        return f"{self._hosts[number % HOSTS]}/p/{number}.html"

    def _build(self) -> None:
        chance = random.Random(7)
        extra: dict[int, list[str]] = {}

        def link_to(url: str) -> None:
            extra.setdefault(chance.randrange(PAGES), []).append(url)

        for number in range(REDIRECTS):
            url = f"{chance.choice(self._hosts)}/moved/{number}"
            target = self._page(chance.randrange(PAGES))
            self.answers[url] = Resolution(301, b"", [target], target)
            link_to(url)
        for number in range(MISSING):
            url = f"{chance.choice(self._hosts)}/missing/{number}"
            self.answers[url] = Resolution(404, b"not here\n" * chance.randrange(1, 9))
            link_to(url)
        for number in range(BROKEN):
            url = f"{self._hosts[number]}/broken/{number}"
            self.answers[url] = Resolution(500, b"broken\n")
            link_to(url)
        for number in range(PRIVATE):
            url = f"{chance.choice(self._hosts)}/private/{number}"
            self.private.add(url)
            link_to(url)
        for number in range(PAGES):
            links = [self._page(child) for child in (2 * number + 1, 2 * number + 2)]
            links = [*links[: max(0, PAGES - 2 * number - 1)], *extra.get(number, [])]
            links += [self._page(chance.randrange(PAGES)) for _ in range(chance.randrange(8))]
            words = "river ship harbour crane " * chance.choice((1, 10, 100, 100, 2000))
            body = f"<html><title>page {number}</title><p>{words}</p>" + "".join(
                f'<a href="{url}">to {at}</a>\n' for at, url in enumerate(links)
            )
            self.answers[self._page(number)] = Resolution(200, body.encode(), links)

    async def listen(self) -> list[asyncio.Server]:
        servers = []
        for number in range(HOSTS):
            server = await asyncio.start_server(self.accept, f"127.1.0.{number + 1}", 0)
            servers.append(server)
            address, port = server.sockets[0].getsockname()
            self._hosts.append(f"http://{address}:{port}")
        self._build()
        return servers

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            await self._answer(writer, f"http://{address}:{port}{path}")

    async def _answer(self, writer: asyncio.StreamWriter, url: str) -> None:
        if url.endswith("/robots.txt"):
            answer = Resolution(200, _ROBOTS)
        else:
            self.seen[url] += 1
            answer = self.answers.get(url) or Resolution(599, b"nobody links here")
        head = f"HTTP/1.1 {answer.status} X\r\nContent-Type: {_HTML}\r\n"
        if answer.location:
            head += f"Location: {answer.location}\r\n"
        head += f"Content-Length: {len(answer.body)}\r\n\r\n"
        half = len(answer.body) // 2
        writer.write(head.encode() + answer.body[:half])
        if self.in_mid_body is not None and half > 1000:
            await writer.drain()
            await asyncio.sleep(0.02)  # so that the crawler reads the half
            if self.in_mid_body is not None:
                call, self.in_mid_body = self.in_mid_body, None
                call()
        writer.write(answer.body[half:])
        await writer.drain()
