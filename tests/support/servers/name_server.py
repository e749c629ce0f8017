"""A server of names that knows some, denies others and says nothing at all about the rest.

    with NameServer({"ok.test": "127.0.0.1", "denied.test": None}) as server:
        server.port      # UDP, of 127.0.0.1; any name below ok.test has that address
        server.asked     # the requested names, in order

Just as much of RFC 1035 as a resolver needs that asks for A and AAAA.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

_A = 1
_NO_SUCH_NAME = 3
_ANSWER, _RECURSION = 0x8000, 0x0180
_TO_THE_QUESTION = 0xC00C
_TTL_SECS = 60


class NameServer:
    """``zones``: names by the domain that they end in; None: there is no such name. It never
    answers for a name in none of them."""

    def __init__(
        self, zones: Mapping[str, str | None], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.zones, self.asked = dict(zones), list[str]()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, port))
        self.host, self.port = self._socket.getsockname()
        self._thread = threading.Thread(target=self._run, name="name-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends recvfrom()
        self._socket.close()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                data, client = self._socket.recvfrom(4096)
                if not data:
                    return  # shut down
                answer = self._answer(data)
                if answer is not None:
                    self._socket.sendto(answer, client)

    def _answer(self, data: bytes) -> bytes | None:
        name, end = _name(data)
        (kind,) = struct.unpack_from("!H", data, end)
        self.asked.append(name)
        zone = next((zone for zone in self.zones if f".{name}".endswith(f".{zone}")), None)
        if zone is None:
            return None
        address = self.zones[zone]
        records = b""
        if address is not None and kind == _A:
            fixed = struct.pack("!HHHIH", _TO_THE_QUESTION, _A, 1, _TTL_SECS, 4)
            records = fixed + socket.inet_aton(address)
        flags = _ANSWER | _RECURSION | (_NO_SUCH_NAME if address is None else 0)
        head = data[:2] + struct.pack("!HHHHH", flags, 1, bool(records), 0, 0)
        return head + data[12 : end + 4] + records


def _name(data: bytes) -> tuple[str, int]:
    """The name of the first question, and where it ends."""
    labels, at = [], 12
    while length := data[at]:
        labels.append(data[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    return ".".join(labels).lower(), at + 1
