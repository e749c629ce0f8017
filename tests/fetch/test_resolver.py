"""What the system's resolver says, as addresses in its order or the reason why there are none."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from larmspider.fetch.dns import Resolution, resolve


def resolver(*addresses: str) -> Callable[..., object]:
    return lambda *_, **__: [(2, 1, 6, "", (address, 0)) for address in addresses]


def test_the_hosts_file_counts() -> None:
    assert "127.0.0.1" in resolve("localhost").addresses


def test_each_address_once_in_the_order_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ("::2", "10.0.0.9", "10.0.0.7", "10.0.0.9")
    monkeypatch.setattr(socket, "getaddrinfo", resolver(*found))
    assert resolve("wiki") == Resolution(("::2", "10.0.0.9", "10.0.0.7"))


def test_addresses_with_a_zone_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolver("fe80::1%eth0", "10.0.0.7"))
    assert resolve("wiki") == Resolution(("10.0.0.7",))
    monkeypatch.setattr(socket, "getaddrinfo", resolver("fe80::1%eth0"))
    assert "no address without a zone" in resolve("wiki").problem


@pytest.mark.parametrize(
    "code, final", [(socket.EAI_NONAME, True), (socket.EAI_AGAIN, False), (socket.EAI_FAIL, False)]
)
def test_no_such_name_is_another_thing_than_nobody_to_ask(
    code: int, final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "words of the system")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert resolve("wiki") == Resolution((), "Could not resolve host: wiki", final)


@pytest.mark.parametrize("name", ["a..b.invalid", "x" * 300, "wiki\0", "wikí"])
def test_a_name_that_is_none_has_no_address(name: str) -> None:
    assert resolve(name).addresses == ()
