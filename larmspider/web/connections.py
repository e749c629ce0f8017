"""Limits the number and age of connections, so that no client can use up the server's descriptors.

    connections = Connections()
    await loop.create_server(connections.limit(runner.server), sock=listening)
    with connections.of(request.transport).busy(): ...       # while a request is answered

A connection waits (for a request, or the rest of its head) or is busy. Above the limit a new
connection replaces the one that has waited longest; connections of signed-in users go last. If all
are busy the new one is a spare connection: it answers /healthz and refuses everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MAX_CONNECTIONS = 200
SPARE = 20
"""Connections kept free for /healthz."""
REQUEST_SECS = 10.0
"""How long a connection may wait, and how long the body of a request may take."""
STALLED_SECS = 30.0
"""Seconds for which a client may accept none of the sent bytes."""
_LOOK_SECS = 1.0

Handlers = Callable[[], asyncio.Protocol]


class Connection(asyncio.Protocol):
    """Passes everything on to the protocol that reads requests."""

    def __init__(self, connections: Connections, handler: asyncio.Protocol) -> None:
        self._connections, self._handler = connections, handler
        self.transport: asyncio.Transport | None = None
        self.spare = False
        self.signed_in = False
        """Whether its last request came from a signed-in user."""
        self._requests = 0
        self._unsent = 0
        self._since = 0.0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a request is answered the connection does not wait."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._since = self._connections.clock()

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Mark a busy connection that waits for the body of its request. It gives way to other
        connections."""
        self._requests -= 1
        self._since = self._connections.clock()
        try:
            yield
        finally:
            self._requests += 1

    @property
    def waiting(self) -> bool:
        return not self._requests and not self._to_send()

    @property
    def since(self) -> float:
        """When it began to wait, or a client that takes nothing took something last."""
        return self._since

    def _to_send(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def look(self, now: float) -> None:
        """Close the connection if it has waited, or stalled, for too long."""
        assert self.transport is not None
        unsent, before = self._to_send(), self._unsent
        self._unsent = unsent
        if unsent != before:
            self._since = now
        elif unsent or self.waiting:
            most = STALLED_SECS if unsent else REQUEST_SECS
            if now >= self._since + most:
                self.transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self._since = transport, self._connections.clock()
        self._connections.opened(self)
        self._handler.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self)
        self._handler.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()


class Connections:
    """All connections of a server."""

    def __init__(self, most: int = MAX_CONNECTIONS, spare: int = SPARE) -> None:
        self._most, self._spare = most, spare
        self._all: dict[asyncio.Transport, Connection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._all)

    def clock(self) -> float:
        """The event loop's time."""
        assert self._loop is not None
        return self._loop.time()

    def limit(self, handlers: Handlers) -> Handlers:
        """A protocol factory for asyncio, over one of protocols that read requests."""
        self._loop = asyncio.get_running_loop()
        return lambda: Connection(self, handlers())

    def of(self, transport: asyncio.Transport | None) -> Connection | None:
        """The Connection of a transport; None if it is closed."""
        return None if transport is None else self._all.get(transport)

    def opened(self, one: Connection) -> None:
        """Make room for a connection."""
        assert one.transport is not None
        assert self._loop is not None
        usual = [other for other in self._all.values() if not other.spare]
        if len(usual) >= self._most - self._spare and not self._close_oldest(usual):
            one.spare = True
            others = [other for other in self._all.values() if other.spare]
            if len(others) >= self._spare and not self._close_oldest(others):
                one.transport.abort()
        self._all[one.transport] = one
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_SECS, self._look)

    def _close_oldest(self, some: list[Connection]) -> bool:
        """Close the connection that has waited longest, preferably without a signed-in user; False
        if none waits."""
        waiting = (one for one in some if one.waiting)
        oldest = min(waiting, key=lambda one: (one.signed_in, one.since), default=None)
        if oldest is None or oldest.transport is None:
            return False
        oldest.transport.abort()
        self._all.pop(oldest.transport, None)
        return True

    def closed(self, one: Connection) -> None:
        assert one.transport is not None
        self._all.pop(one.transport, None)
        if not self._all:
            self._rest()

    def _look(self) -> None:
        self._timer = None
        now = self.clock()
        for one in list(self._all.values()):
            one.look(now)
        if self._all:
            assert self._loop is not None
            self._timer = self._loop.call_later(_LOOK_SECS, self._look)

    async def close(self) -> None:
        """Close the remaining connections, even if a client accepts no unsent bytes."""
        for transport in list(self._all):
            transport.abort()
        await asyncio.sleep(0)  # asyncio closes their sockets
        self._rest()

    def _rest(self) -> None:
        """Look again when there is a connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
