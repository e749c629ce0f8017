r"""A server that answers from a table: any status, any header, a delay, or bytes that are no HTTP.

    with ScriptedServer({
        "/": (200, {}, b"<a href=/slow>slow</a>"),
        "/slow": lambda request: Reply(body=b"at last", delay=0.3),
        "/broken": Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"),
    }) as server:
        server.url("/slow")    # http://127.0.0.1:<port>/slow
        server.log             # each request with its time, in order of arrival

It lives in a thread with an event loop of its own and speaks HTTP/1.1 with keep-alive.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.support.servers.certificate import self_signed
from tests.support.servers.threaded import ThreadedServer

_MAX_HEAD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came. ``time`` is ``time.monotonic()`` at the end of its head, in seconds;
    ``target`` is path and query as sent; header names are in lower case. ``head`` is all of it
    before the body, as it came."""

    time: float
    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    connection: int = 0
    head: str = ""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


@dataclass(slots=True)
class Reply:
    """A well-formed answer after ``delay`` seconds. Content-Length is added unless the headers
    name it or Transfer-Encoding; ``close`` ends the connection."""

    status: int = 200
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0
    close: bool = False


@dataclass(slots=True)
class Raw:
    """These bytes and nothing else, then the end of the connection: for broken servers.

    Each chunk is sent by itself, ``pause`` seconds apart; with ``hang`` the connection then stays
    open without a word until the client leaves or the server ends.
    """

    chunks: bytes | Iterable[bytes]
    pause: float = 0.0
    hang: bool = False


Resolution = Reply | Raw | tuple[int, Mapping[str, str], bytes] | bytes | str
Route = Resolution | Callable[[Request], Resolution]


class ScriptedServer(ThreadedServer):
    """Answers by ``routes``: path with query first, then path, then "*", else 404.

    A text or bytes alone is a page of HTML, a tuple (status, headers, body) a Reply. A function
    gets the Request, in the server's thread. ``routes`` may be changed while the server runs.
    ``host`` may be any loopback address, ``port`` 0 takes a free one. With ``tls`` it speaks https
    and shows a self-signed certificate, or the certificate of a context.
    """

    def __init__(
        self,
        routes: Mapping[str, Route] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: bool | ssl.SSLContext = False,
    ) -> None:
        super().__init__()
        self.routes = dict(routes or {})
        self.host = host
        self.port = port
        self.tls = tls
        self.log: list[Request] = []
        self.connections = 0
        self.open = 0
        self.peak_open = 0

    def url(self, path: str = "/") -> str:
        """The URL of ``path`` on this server."""
        return f"http{'s' if self.tls else ''}://{self.host}:{self.port}{path}"

    def requests(self, path: str | None = None) -> list[Request]:
        """The log, or the part of it that asked for ``path``."""
        return [request for request in self.log if path in (None, request.path)]

    async def listen(self) -> list[asyncio.Server]:
        server = await asyncio.start_server(
            self.accept,
            self.host,
            self.port,
            limit=_MAX_HEAD_BYTES,
            backlog=1024,
            ssl=self_signed(self.host) if self.tls is True else self.tls or None,
        )
        self.port = server.sockets[0].getsockname()[1]
        return [server]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.peak_open = max(self.peak_open, self.open)
        try:
            await self._converse(reader, writer, self.connections)
        finally:
            self.open -= 1

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        while True:
            request = await _read_request(reader, connection)
            self.log.append(request)
            answer = self._answer(request)
            if isinstance(answer, Raw):
                await _send_raw(reader, writer, answer)
                return
            if answer.delay:
                await asyncio.sleep(answer.delay)
            close = answer.close or request.headers.get("connection", "").lower() == "close"
            writer.write(_head(answer, close))
            if request.method != "HEAD":
                writer.write(answer.body)
            await writer.drain()
            if close:
                return

    def _answer(self, request: Request) -> Reply | Raw:
        for key in (request.target, request.path, "*"):
            if key in self.routes:
                found = self.routes[key]
                answer = found(request) if callable(found) else found
                break
        else:
            answer = (404, {"Content-Type": "text/plain"}, b"not in the script\n")
        if isinstance(answer, str):
            answer = answer.encode()
        if isinstance(answer, bytes):
            return Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=answer)
        if isinstance(answer, tuple):
            return Reply(*answer)
        return answer


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(time.monotonic(), method, target, headers, body, connection, head)


def _head(reply: Reply, close: bool) -> bytes:
    headers = list(
        reply.headers.items() if isinstance(reply.headers, Mapping) else iter(reply.headers)
    )
    names = {name.lower() for name, _ in headers}
    if not names & {"content-length", "transfer-encoding"}:
        headers.append(("Content-Length", str(len(reply.body))))
    if close:
        headers.append(("Connection", "close"))
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Whatever"
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _send_raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, raw: Raw) -> None:
    for chunk in [raw.chunks] if isinstance(raw.chunks, bytes) else raw.chunks:
        writer.write(chunk)
        await writer.drain()
        if raw.pause:
            await asyncio.sleep(raw.pause)
    if raw.hang:
        await reader.read()


# Digest authentication as a server checks it (RFC 7616, qop auth), on top of ScriptedServer.


_HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}
_PAIR = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')


class DigestGuard:
    """Knows one user. ``stale_after`` uses of a nonce it asks for another."""

    def __init__(
        self, user: str, password: str, algorithm: str = "SHA-256", stale_after: int = 1000
    ) -> None:
        self.realm = "the archive"
        self.user, self.password = user, password
        self.algorithm, self.stale_after = algorithm, stale_after
        self.accepted = self.challenged = 0
        self._counts: dict[str, int] = {}

    def protect(self, body: bytes) -> Callable[[Request], Reply]:
        """A route that gives ``body`` to the user alone."""

        def answer(request: Request) -> Reply:
            sent = request.headers.get("authorization", "")
            challenge = self.challenge(sent, request.method, request.target)
            if challenge:
                return Reply(401, {"WWW-Authenticate": challenge}, b"who are you?")
            return Reply(headers={"Content-Type": "text/html"}, body=body)

        return answer

    def challenge(self, sent: str, method: str, target: str) -> str:
        """The challenge of a server or a proxy; "" if ``sent``, the value of
        (Proxy-)Authorization, is right."""
        answered = self._check(sent, method, target)
        if answered == "right":
            self.accepted += 1
            return ""
        self.challenged += 1
        nonce = secrets.token_urlsafe(12)
        self._counts[nonce] = 0
        stale = "true" if answered == "stale" else "false"
        return (
            f'Digest realm="{self.realm}", qop="auth", algorithm={self.algorithm},'
            f' nonce="{nonce}", stale={stale}'
        )

    def _check(self, value: str, method: str, target: str) -> str:
        """right, wrong, or stale: right, but with a nonce that has been used too often."""
        scheme, _, rest = value.partition(" ")
        sent = {name: quoted or bare for name, quoted, bare in _PAIR.findall(rest)}
        nonce = sent.get("nonce", "")
        if scheme.lower() != "digest" or nonce not in self._counts:
            return "wrong"
        count = int(sent.get("nc", "0"), 16)
        if count <= self._counts[nonce]:
            return "wrong"
        self._counts[nonce] = count
        a1 = self._hash(f"{self.user}:{self.realm}:{self.password}")
        a2 = self._hash(f"{method}:{target}")
        middle = (nonce, sent["nc"], sent["cnonce"], "auth")
        expected = self._hash(":".join((a1, *middle, a2)))
        right = (
            sent.get("username") == self.user
            and sent.get("realm") == self.realm
            and sent.get("uri") == target
            and sent.get("qop") == "auth"
            and secrets.compare_digest(sent.get("response", ""), expected)
        )
        if not right:
            return "wrong"
        return "right" if count <= self.stale_after else "stale"

    def _hash(self, text: str) -> str:
        return _HASHES[self.algorithm](text.encode()).hexdigest()
