"""A server that sends given bytes to each request: for clients that must not trust it.

with RawServer(lambda: iter([b"HTTP/1.1 200 OK\\r\\n\\r\\n", b"x" * 100])) as server:
    connect(server.port)
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self


class RawServer:
    """``parts`` are sent on each connection, after its first bytes have come; then it ends.
    ``asked`` is what has come."""

    def __init__(self, parts: Callable[[], Iterable[bytes]]) -> None:
        self._parts = parts
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.asked: list[bytes] = []
        self.stopped = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[one], daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with one:
            try:
                self.asked.append(one.recv(65_536))
                for part in self._parts():
                    if self.stopped.is_set():
                        return
                    one.sendall(part)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65_536):
                    pass
            except OSError:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stopped.set()
        self._listening.close()
