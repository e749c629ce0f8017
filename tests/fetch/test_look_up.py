"""The handler looks names up before libcurl is asked, which never looks up one by itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.http import Response

from larmspider.fetch.dns import DnsCache, Resolution
from larmspider.fetch.errors import TimedOut, kind_of, message_of
from larmspider.requests import TIMING
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import ScriptedServer

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]
UNKNOWN = Resolution(problem="Could not resolve host: unknown here", final=True)


class Resolver:
    """No name of ours exists anywhere else; "slow" takes a third of a second, "hangs" forever."""

    def __init__(self, fetcher: Fetcher, **names: tuple[str, ...]) -> None:
        self.names = names
        self.asked: list[str] = []
        self.now = 0.0
        self._go = threading.Event()
        limits = fetcher.handler.limits
        fetcher.handler.dns = DnsCache(
            limits.connect_secs, limits.dns_secs, self.resolve, lambda: self.now
        )

    def resolve(self, name: str) -> Resolution:
        self.asked.append(name)
        if name == "hangs":
            self._go.wait(20)
        if name == "slow":
            time.sleep(0.3)
        addresses = self.names.get(name)
        return Resolution(addresses) if addresses else UNKNOWN


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("127.38.9.9", "::1", "127.0.0.1")])
def test_fetched_from_the_addresses_found(
    scripted_server: Start, fetcher: Make, tls: bool, addresses: tuple[str, ...]
) -> None:
    """The next is tried where one does not answer."""
    server = scripted_server({"*": "x"}, tls=tls)
    one = fetcher(DOWNLOAD_VERIFY_CERTIFICATES=False)
    resolver = Resolver(one, wiki=addresses)
    for _ in range(3):
        response = one.get(f"http{'s' * tls}://wiki:{server.port}/")
        assert str(response.ip_address) == "127.0.0.1"
    assert server.log[0].headers["host"] == f"wiki:{server.port}"
    assert resolver.asked == ["wiki"]


def test_an_address_that_has_changed_is_asked_once_it_is_old(
    scripted_server: Start, fetcher: Make
) -> None:
    """libcurl's own memory does not count."""
    before = scripted_server({"*": lambda request: "before"}, "127.38.0.1")
    one = fetcher(LARM_DNS_CACHE_SECS=100)
    resolver = Resolver(one, wiki=("127.38.0.1",))
    url, headers = f"http://wiki:{before.port}/", {"Connection": "close"}
    assert str(one.get(url, headers=headers).ip_address) == "127.38.0.1"
    resolver.names["wiki"] = ("127.38.0.2",)
    resolver.now = 99.0
    assert str(one.get(url, headers=headers).ip_address) == "127.38.0.1"
    resolver.now = 100.0
    assert kind_of(one.failure(url, headers=headers)) == "refused"
    assert len(resolver.asked) == 2


def test_no_address(fetcher: Make) -> None:
    one = fetcher()
    Resolver(one)
    error = one.failure("http://wiki/")
    assert (kind_of(error), message_of(error)) == ("dns", UNKNOWN.problem)


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "::ffff:169.254.169.254"])
def test_what_is_found_may_be_denied(fetcher: Make, address: str) -> None:
    one = fetcher()
    Resolver(one, wiki=(address,))
    assert kind_of(one.failure("http://wiki/")) == "address"


def test_of_several_addresses_the_denied_are_left_out(
    scripted_server: Start, fetcher: Make
) -> None:
    server, one = scripted_server({"*": "x"}), fetcher()
    Resolver(one, wiki=("169.254.169.254", "127.0.0.1"))
    assert one.get(f"http://wiki:{server.port}/").status == 200


def test_the_look_up_counts_in_all_times(scripted_server: Start, fetcher: Make) -> None:
    server, one = scripted_server({"*": "x"}), fetcher()
    Resolver(one, slow=("127.0.0.1",))
    timing = one.get(f"http://slow:{server.port}/").meta[TIMING]
    assert 0.3 <= timing["dns"] <= timing["connect"] <= timing["first_byte"] <= timing["total"]
    assert timing["tls"] == 0.0
    again = one.get(f"http://slow:{server.port}/").meta[TIMING]
    assert again["dns"] < 0.3


def test_the_time_for_a_connection_holds_for_the_look_up(fetcher: Make) -> None:
    one = fetcher(LARM_CONNECT_TIMEOUT_SECS=0.2)
    Resolver(one)
    error = one.failure("http://hangs/")
    assert kind_of(error) == "dns"
    assert "no DNS server answered for hangs" in message_of(error)


def test_the_time_for_the_fetch_holds_for_the_look_up(fetcher: Make) -> None:
    one = fetcher()
    Resolver(one)
    error = one.failure("http://hangs/", meta={"download_timeout": 0.2})
    assert (kind_of(error), "0.2 s" in message_of(error)) == ("timeout", True)


def test_who_gives_up_takes_the_look_up_from_nobody_else(
    scripted_server: Start, fetcher: Make
) -> None:
    server, one = scripted_server({"*": "x"}), fetcher()
    resolver = Resolver(one, slow=("127.0.0.1",))
    url = f"http://slow:{server.port}/"

    async def fetch() -> list[object]:
        hasty, patient = Request(url, meta={"download_timeout": 0.05}), Request(url)
        both = (one.handler.download_request(request) for request in (hasty, patient))
        return await asyncio.gather(*both, return_exceptions=True)

    error, response = one.run(fetch)
    assert isinstance(error, TimedOut)
    assert isinstance(response, Response)
    assert resolver.asked == ["slow"]


def test_a_look_up_under_way_is_let_go_of(fetcher: Make) -> None:
    one = fetcher()
    Resolver(one)

    async def cancel() -> None:
        task = asyncio.ensure_future(one.handler.download_request(Request("http://hangs/")))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    one.run(cancel)


@pytest.mark.parametrize(
    "scheme, asked", [("http", ["gate"]), ("socks5h", ["gate"]), ("socks5", ["wiki", "gate"])]
)
def test_by_a_proxy_its_name_is_looked_up(
    scripted_server: Start, fetcher: Make, scheme: str, asked: list[str]
) -> None:
    """The proxy looks up the host's name, because it may know another address; for socks5 we do."""
    server, one = scripted_server({"*": "x"}), fetcher()
    resolver = Resolver(one, wiki=("127.0.0.1",), gate=("127.0.0.1",))
    with ProxyServer(names={"wiki": "127.0.0.1"}) as proxy:
        meta = {"proxy": f"{scheme}://gate:{proxy.port}"}
        assert one.get(f"http://wiki:{server.port}/", meta=meta).status == 200
        assert len(proxy.log) == 1
    assert resolver.asked == asked


def test_names_that_hang_hold_up_no_fetch_of_another(scripted_server: Start, fetcher: Make) -> None:
    """More of them than libcurl has threads, and than look-ups are under way at once."""
    server, one = scripted_server({"*": "x"}), fetcher()
    resolver = Resolver(one, wiki=("127.0.0.1",))
    quick = resolver.resolve

    def hang(name: str) -> Resolution:
        return quick("hangs" if name.startswith("dead") else name)

    one.handler.dns = names = DnsCache(20.0, 300.0, hang, slow=0.05)

    async def fetch() -> int:
        download = one.handler.download_request
        dead = [
            asyncio.ensure_future(download(Request(f"http://dead{number}/")))
            for number in range(100)
        ]
        await asyncio.sleep(0)
        response = await asyncio.wait_for(download(Request(f"http://wiki:{server.port}/")), 15)
        waiting = sum(not task.done() for task in dead)
        for task in dead:
            task.cancel()
        await asyncio.gather(*dead, return_exceptions=True)
        assert response.status == 200
        return waiting

    assert one.run(fetch) == 100
    names.close()
