"""Whose addresses a fetch needs, and how libcurl is told of them."""

from __future__ import annotations

import pytest

from larmspider.fetch.dns import Endpoint, names_needed, needs_look_up, resolve_line

PROXY = ("proxy", 3128)


@pytest.mark.parametrize(
    "url, proxy, needed",
    [
        ("http://wiki", None, [("wiki", 80)]),
        ("https://wiki/a?b", "", [("wiki", 443)]),
        ("http://WIKI:8080/a", None, [("wiki", 8080)]),
        ("http://user:word@wiki/a", None, [("wiki", 80)]),
        ("http://wiki./", None, [("wiki.", 80)]),
        ("http://my_wiki/", None, [("my_wiki", 80)]),
        ("http://%77iki/", None, [("wiki", 80)]),
        ("http://bücher.example/", None, [("xn--bcher-kva.example", 80)]),
        ("http://" + "w" * 400 + "/", None, [("w" * 400, 80)]),
        ("http://10.0.0.7/", None, []),
        ("http://0x0a000007/", None, []),
        ("http://[::1]:80/", None, []),
        ("http://localhost:80/", None, []),
        ("http://a.localhost/", None, []),
        ("http://a.onion/", None, []),
        ("http:///", None, []),
        ("http://wiki:99999/", None, []),
        ("http://wiki/", "http://proxy:3128", [PROXY]),
        ("http://wiki/", "proxy:3128", [PROXY]),
        ("http://wiki/", "//proxy:3128", [PROXY]),
        ("http://wiki/", "http://user:word@proxy:3128/", [PROXY]),
        ("http://wiki/", "http://proxy", [("proxy", 80)]),
        ("http://wiki/", "https://proxy", [("proxy", 443)]),
        ("http://wiki/", "socks5h://proxy:80", [("proxy", 80)]),
        ("http://wiki/", "SOCKS5://proxy", [("wiki", 80), ("proxy", 1080)]),
        ("http://wiki/", "socks4://proxy:443", [("wiki", 80), ("proxy", 443)]),
        ("http://wiki/", "http://10.0.0.7:3128", []),
        ("http://wiki/", "http://[::1]:3128", []),
    ],
)
def test_names_of_host_or_proxy(url: str, proxy: str | None, needed: list[tuple[str, int]]) -> None:
    assert list(names_needed(url, proxy)) == needed


@pytest.mark.parametrize("name", ["", "[::1]", "::1", "10.0.0.7", "localhost.", "a.localhost"])
def test_names_that_nobody_needs_to_be_asked_for(name: str) -> None:
    assert not needs_look_up(name)


def test_addresses_as_libcurl_reads_them() -> None:
    line = resolve_line(Endpoint("wiki", 80), ["::2", "10.0.0.7"])
    assert line == "+wiki:80:[::2],10.0.0.7"
