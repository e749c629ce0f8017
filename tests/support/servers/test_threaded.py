"""tests/support/servers/threaded.py: a server ends with its block, whatever its clients do."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.support.servers.threaded import ThreadedServer


class Echo(ThreadedServer):
    """A line back for each line."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__()
        self.host = host
        self.address = ("", 0)
        self.met = 0

    async def listen(self) -> list[asyncio.Server]:
        server = await asyncio.start_server(self.accept, self.host, 0)
        self.address = server.sockets[0].getsockname()
        return [server]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        while True:
            writer.write(await reader.readuntil(b"\n"))


def test_who_is_connected_at_the_end_is_cut_off() -> None:
    """The block ends all the same, and the client sees the end of the connection."""
    with Echo() as server, socket.create_connection(server.address, timeout=10) as client:
        client.sendall(b"hello\n")
        assert client.recv(100) == b"hello\n"
        server.__exit__(None, None, None)
        assert client.recv(100) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.address, timeout=10)


def test_a_client_that_leaves_does_not_disturb_the_others() -> None:
    """One that goes in mid-line, then another."""
    with Echo() as server:
        with socket.create_connection(server.address, timeout=10) as client:
            client.sendall(b"half a li")
        with socket.create_connection(server.address, timeout=10) as client:
            client.sendall(b"hello\n")
            assert client.recv(100) == b"hello\n"
    assert server.met == 2


def test_an_address_that_cannot_be_bound_is_an_error_at_the_start() -> None:
    """Not a server that never gets ready."""
    with pytest.raises(OSError), Echo("192.0.2.1"):
        pass
