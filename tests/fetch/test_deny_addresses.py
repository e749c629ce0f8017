"""Addresses that are never asked, whatever name, number or redirect leads there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.errors import kind_of, message_of
from larmspider.options import defaults
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import ScriptedServer

DEFAULT = DenyAddresses(defaults()["LARM_DENY_ADDRESSES"])


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "169.254.0.1", "0.0.0.0", "0.1.2.3", "::", "fe80::1", "fe80::1%eth0",
        "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1", "::ffff:0.0.0.0", "::169.254.169.254", "::2",
        "64:ff9b:1::169.254.169.254", "64:ff9b:1:7:8:9:a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:1a9:fe:a9fe::", "64:ff9b:1:1:a9:fea9:fe00:0",
        "fd00:ec2::254", "100.100.100.200", "::ffff:100.100.100.200", "168.63.129.16",
        "192.0.0.192", "fd20:ce::254", "64:ff9b::168.63.129.16",
    ],
)  # fmt: skip
def test_denied_by_default(address: str) -> None:
    """Link-local, this host, and IPv6 addresses that stand for denied IPv4 ones."""
    assert DEFAULT.reason(address) is not None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:10.0.0.1", "::10.0.0.1",
        "64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1", "64:ff9b:1:a00:0:100::", "100.100.100.201",
        "fd00:ec2::253", "168.63.129.15", "192.0.0.191", "fd20:ce::253",
    ],
)  # fmt: skip
def test_an_intranet_is_allowed(address: str) -> None:
    assert DEFAULT.reason(address) is None


def test_allow_wins() -> None:
    """One network, or one address, out of a larger one."""
    deny = DenyAddresses(["10.0.0.0/8", "::ffff:11.0.0.0/104"], ["10.1.0.0/16", "10.2.2.2"])
    found = [deny.reason(text) for text in ("10.0.0.1", "10.1.9.9", "10.2.2.2", "11.1.1.1", "x")]
    assert found == [
        "10.0.0.1 is in 10.0.0.0/8", None, None, "11.1.1.1 is in 11.0.0.0/8",
        "x is not an IP address",
    ]  # fmt: skip


def test_a_network_of_ipv6_holds_for_what_stands_for_ipv4_too() -> None:
    deny = DenyAddresses(["64:ff9b::/96", "::/96"])
    assert [bool(deny.reason(text)) for text in ("64:ff9b::10.0.0.1", "::10.0.0.1")] == [True, True]


@pytest.mark.parametrize("name", ["LARM_DENY_ADDRESSES", "LARM_ALLOW_ADDRESSES"])
def test_an_entry_that_is_no_network_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: localhost: expected"):
        DenyAddresses.from_settings(Settings({name: "127.0.0.0/8,localhost"}))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "127.1"])
def test_a_denied_address_is_never_connected(
    scripted_server: Callable[..., ScriptedServer], fetcher: Callable[..., Fetcher], host: str
) -> None:
    """However it is written; with the reason, and it is not tried again."""
    server = scripted_server({"*": "x"})
    one = fetcher(LARM_DENY_ADDRESSES=["127.0.0.0/8", "::1"])
    error = one.failure(f"http://{host}:{server.port}/")
    assert kind_of(error) == "address"
    assert "127.0.0.0/8" in message_of(error) or "::1" in message_of(error)
    assert server.connections == 0
    allowed = fetcher(LARM_DENY_ADDRESSES="127.0.0.0/8", LARM_ALLOW_ADDRESSES="127.0.0.1,::1")
    assert allowed.get(f"http://{host}:{server.port}/").status == 200


def test_a_name_with_another_address_is_asked_there(
    scripted_server: Callable[..., ScriptedServer], fetcher: Callable[..., Fetcher]
) -> None:
    """localhost without ::1 is still 127.0.0.1."""
    server = scripted_server({"*": "x"})
    one = fetcher(LARM_DENY_ADDRESSES=["::1"])
    assert one.get(f"http://localhost:{server.port}/").status == 200


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "0xa9fea9fe", "[::ffff:a9fe:a9fe]", "[fe80::1%25eth0]"]
)
def test_a_proxy_is_no_way_around(fetcher: Callable[..., Fetcher], host: str) -> None:
    """A denied number in the URL is refused before the proxy hears of it."""
    error = fetcher().failure(f"http://{host}/", meta={"proxy": "http://127.0.0.1:9"})
    assert kind_of(error) == "address"


def test_a_network_is_denied_at_a_port() -> None:
    """Whatever is allowed, by any spelling of the address; other ports are not."""
    deny = DenyAddresses(["127.0.0.0/8:6379", "[::1]:6379"], ["127.0.0.0/8", "::1"])
    for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert "denied at port 6379" in (deny.reason(address, 6379) or "")
        assert deny.reason(address, 80) is None
        assert deny.reason(address) is None
    for wrong in ("127.0.0.1:0", "127.0.0.1:99999", "[::1:80", "a:80"):
        with pytest.raises(ValueError):
            DenyAddresses([wrong])
