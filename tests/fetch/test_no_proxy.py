"""larmspider/fetch/no_proxy.py: which hosts need no proxy."""

from __future__ import annotations

import pytest
from scrapy import Request

from larmspider.fetch.dns import OwnAddress
from larmspider.fetch.no_proxy import NoProxy
from larmspider.fetch.sites.lookup import Sites
from larmspider.middlewares.environment_proxies import EnvironmentProxiesMiddleware


@pytest.mark.parametrize(
    "text, url",
    [
        ("*", "http://wiki/"),
        (" * ", "http://wiki/"),
        ("wiki", "http://wiki/"),
        ("WIKI", "https://Wiki:8443/x"),
        ("a, wiki ,b", "http://wiki/"),
        ("a wiki", "http://wiki/"),
        ("wiki:80", "http://wiki/"),
        ("wiki:443", "https://wiki/"),
        ("wiki:8080", "http://wiki:8080/"),
        ("example", "http://wiki.example/"),
        (".example", "http://wiki.example/"),
        ("*.example", "http://a.wiki.example/"),
        (".example:8080", "http://wiki.example:8080/"),
        ("wiki.example.", "http://wiki.example/"),
        ("wiki.example", "http://wiki.example./"),
        ("10.1.2.3", "http://10.1.2.3:81/"),
        ("10.1.2.3:81", "http://10.1.2.3:81/"),
        ("10.0.0.0/8", "http://10.1.2.3/"),
        ("10.9.9.9/8", "http://10.1.2.3/"),
        ("10.1.2.3/32", "http://10.1.2.3/"),
        ("::1", "http://[::1]:8080/"),
        ("[::1]", "http://[::1]/"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("0:0:0:0:0:0:0:1", "http://[::1]/"),
        ("fd00::/8", "http://[fd12::1]/"),
        ("http://, 10.0.0.0/99, :80, , wiki", "http://wiki/"),
    ],
)
def test_a_host_that_is_listed_is_asked_directly(
    text: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the function, by the middleware, and as far as names are looked up."""
    assert NoProxy(text)(url)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9/")
    monkeypatch.setenv("no_proxy", text)
    request = Request(url)
    EnvironmentProxiesMiddleware().process_request(request)
    assert request.meta.get("proxy") is None
    own = OwnAddress(Sites(), {"http": "http://h:9/", "https": "http://h:9/", "no": text})
    assert own._of_environment(url) is None


@pytest.mark.parametrize(
    "text, url",
    [
        ("", "http://wiki/"),
        ("ki", "http://wiki/"),
        ("wiki:8080", "http://wiki/"),
        ("wiki:80", "https://wiki/"),
        ("wiki:1", "http://wiki/"),
        ("other.example", "http://example/"),
        ("10.1.2.3:1", "http://10.1.2.3/"),
        ("10.0.0.0/8", "http://11.1.2.3/"),
        ("10.0.0.0/8", "http://host10.example/"),
        ("[::1]:1", "http://[::1]/"),
        ("fd00::/8", "http://10.1.2.3/"),
        ("/8", "http://wiki/"),
    ],
)
def test_another_host_is_asked_by_the_proxy(
    text: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not NoProxy(text)(url)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9/")
    monkeypatch.setenv("no_proxy", text)
    request = Request(url)
    EnvironmentProxiesMiddleware().process_request(request)
    assert request.meta["proxy"] == "http://127.0.0.1:9"


def test_a_proxy_that_a_request_names_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    monkeypatch.setenv("no_proxy", "*")
    request = Request("http://wiki/", meta={"proxy": "http://h:8/"})
    EnvironmentProxiesMiddleware().process_request(request)
    assert request.meta["proxy"] == "http://h:8"
