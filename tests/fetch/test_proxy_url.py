"""What meta["proxy"] names: a scheme, a host, a port, and who asks."""

from __future__ import annotations

import pytest

from larmspider.fetch.errors import BadUrl
from larmspider.fetch.proxies import ProxyUrl, read_proxy


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("proxy:3128", ("http", "proxy", 3128, None, "")),
        ("//proxy:3128", ("http", "proxy", 3128, None, "")),
        ("proxy", ("http", "proxy", 80, None, "")),
        ("joe:a%40b@proxy:3128/", ("http", "proxy", 3128, "joe", "a@b")),
        ("//joe@proxy:3128", ("http", "proxy", 3128, "joe", "")),
        ("[::1]:3128", ("http", "::1", 3128, None, "")),
        ("HTTPS://proxy", ("https", "proxy", 443, None, "")),
        ("socks4://proxy", ("socks4", "proxy", 1080, None, "")),
        ("socks4a://proxy", ("socks4a", "proxy", 1080, None, "")),
        ("socks5://proxy", ("socks5", "proxy", 1080, None, "")),
        ("socks5h://proxy:80", ("socks5h", "proxy", 80, None, "")),
    ],
)
def test_a_proxy(text: str, proxy: tuple[str, str, int, str | None, str]) -> None:
    assert read_proxy(text) == ProxyUrl(*proxy)


@pytest.mark.parametrize(
    "text",
    ["", "foo://x", "foo://x:80", "https:x", "http://", "//", ":3128", "http://x:none", "x:none",
     "x:0", "x:65536", "http://[::1", "http:////x:80"],
)  # fmt: skip
def test_what_is_no_proxy(text: str) -> None:
    with pytest.raises(
        BadUrl, match="no proxy: expected http, https, socks4, socks4a, socks5, socks5h"
    ):
        read_proxy(text)
