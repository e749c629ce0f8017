"""What a host does with a request: building blocks for cases, from a whole reply to none at all."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from tests.support.hostile.server import Behaviour, Wire

HTML = "Content-Type: text/html; charset=utf-8"
MB = 1 << 20


def head(*lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    """A status line, header lines and the blank line."""
    return "".join(f"{line}\r\n" for line in (status, *lines, "")).encode("latin-1")


def reply(*lines: str, body: bytes = b"", status: str = "HTTP/1.1 200 OK") -> bytes:
    """A whole reply; Content-Length is right unless a line speaks of the length."""
    names = {line.partition(":")[0].lower() for line in lines}
    if not names & {"content-length", "transfer-encoding"}:
        lines = (*lines, f"Content-Length: {len(body)}")
    return head(*lines, status=status) + body


def sends(*parts: bytes) -> Behaviour:
    """These bytes, then the end of the connection."""

    async def behave(wire: Wire) -> None:
        for part in parts:
            await wire.send(part)

    return behave


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def then_hangs(*parts: bytes) -> Behaviour:
    """These bytes, then silence on an open connection."""

    async def behave(wire: Wire) -> None:
        await sends(*parts)(wire)
        await wire.until_it_leaves()

    return behave


def then_resets(*parts: bytes) -> Behaviour:
    """These bytes, then a TCP reset."""

    async def behave(wire: Wire) -> None:
        await sends(*parts)(wire)
        await asyncio.sleep(0.05)  # or they are lost with the connection
        wire.reset()

    return behave


def endless(start: bytes, again: bytes, pause: float = 0.0) -> Behaviour:
    """``start``, then ``again`` for as long as the client listens, ``pause`` seconds apart."""

    async def behave(wire: Wire) -> None:
        await wire.send(start)
        while True:
            await wire.send(again)
            await asyncio.sleep(pause)  # 0: lets the other hosts speak

    return behave


def after_robots(behave: Behaviour) -> Behaviour:
    """There is no robots.txt; then as ``behave``."""

    async def answer(wire: Wire) -> None:
        if wire.target == "/robots.txt":
            await wire.send(reply("Connection: close", status="HTTP/1.1 404 Not Found"))
        else:
            await behave(wire)

    return answer


def site(answer: Callable[[str], bytes]) -> Behaviour:
    """A host with keep-alive whose reply depends on the target that is asked for."""

    async def behave(wire: Wire) -> None:
        while True:
            await wire.send(answer(wire.target))
            await wire.next_request()

    return behave


def html(body: bytes | str, *lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    """A whole reply with a page."""
    return reply(HTML, *lines, body=body.encode() if isinstance(body, str) else body, status=status)


def links_to(targets: Iterable[str]) -> bytes:
    """A page of links."""
    return html("".join(f"<a href='{target}'>on</a>\n" for target in targets))


def pages(answer: Callable[[str], Iterable[str]]) -> Behaviour:
    """A site of pages of links: ``answer`` says for a target where its page leads."""
    return site(lambda target: links_to(answer(target)))


def redirects(location: str, *lines: str, status: str = "HTTP/1.1 302 Found") -> Behaviour:
    return sends(reply(f"Location: {location}", *lines, "Connection: close", status=status))


def count() -> Iterator[int]:
    """Numbers that a server makes up as it goes on."""
    return itertools.count(1)


@cache
def gzip_bomb(size: int) -> bytes:
    return gzip.compress(bytes(size), 9)


def gzipped(body: bytes, times: int = 1) -> bytes:
    for _ in range(times):
        body = gzip.compress(body, 6, mtime=0)
    return body
