"""A server in a thread with an event loop of its own: starts, serves and stops with its block.

class Echo(ThreadedServer):
    async def listen(self):
        return [await asyncio.start_server(self.accept, "127.0.0.1", 0)]

    async def converse(self, reader, writer):
        writer.write(await reader.readline())
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

_START_SECS = 60.0
_LEAVE_SECS = 60.0


class ThreadedServer(ABC):
    """At the end of its block it stops listening and cuts off all clients."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    @abstractmethod
    async def listen(self) -> Sequence[asyncio.Server]:
        """Open the sockets, with accept() for their connections. OSError: __enter__ raises it."""

    @abstractmethod
    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, which is over when this returns or when the client leaves."""

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_START_SECS):
            raise RuntimeError(f"{self._thread.name} did not start")
        if self._failure:
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self._failure = error
        finally:
            self._loop.close()
            self._ready.set()

    def wait_until_left(self) -> None:
        """Until every client that has ended is noticed, and all that it had sent is read.

        A process that is killed leaves requests in the sockets' buffers.
        """
        asyncio.run_coroutine_threadsafe(self._all_left(), self._loop).result(_LEAVE_SECS)

    async def _all_left(self) -> None:
        rounds = 0
        while rounds < 4:  # a round accepts who waits, the next one begins to read from him
            await asyncio.sleep(0)
            rounds = 0 if self._tasks else rounds + 1

    async def _serve(self) -> None:
        servers = await self.listen()
        self._ready.set()
        await self._stop.wait()
        for server in servers:
            for listening in server.sockets:
                self._loop.remove_reader(listening.fileno())
        for _ in range(4):  # as in larmspider/web/server.py
            await asyncio.sleep(0)
        for server in servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # what they closed is lost by now, before the loop ends

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """For asyncio.start_server(): converse(), whatever its client does."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.converse(reader, writer)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
            # The client left, or sent what is no request: this connection is over. Cancelled, we
            # are closing down, and a task that ends quietly is what the stream callback wants.
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if self._stop.is_set() else writer.close()
