"""larmspider/fetch/sites/lookup.py: which rules are meant for a URL, by its origin alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.fetch.sites.lookup import Sites, origin_of
from larmspider.fetch.sites.model import Secret, SiteOptions, SiteRule
from larmspider.urls.host_pattern import HostPattern

WITH_KEY = SiteOptions(headers=(("Key", Secret("canary")),))


def rule(pattern: str, options: SiteOptions, *schemes: str) -> SiteRule:
    return SiteRule(pattern, (HostPattern.parse(pattern),), frozenset(schemes), options)


@pytest.mark.parametrize(
    "url, applies",
    [
        ("https://wiki.example/", True),
        ("https://wiki.example", True),
        ("https://wiki.example:443/a/b", True),
        ("HTTPS://Wiki.Example/a", True),
        ("https://wiki.example./a", True),
        ("https://wiki.example?q=/", True),
        ("https://wiki.example\\@evil.example/", True),  # a path, for WHATWG
        ("https://joe:word@wiki.example/", True),
        ("http://wiki.example/", False),
        ("http://wiki.example:443/", False),
        ("https://wiki.example:8443/", False),
        ("https://evil.example/", False),
        ("https://wiki.example@evil.example/", False),
        ("https://wiki.example:443@evil.example/", False),
        ("https://evil.example/https://wiki.example/", False),
        ("https://evil.example?https://wiki.example/", False),
        ("https://evil.example#@wiki.example/", False),
        ("https://evil.example\\@wiki.example/", False),
        ("https://wiki.example.evil.example/", False),
        ("https://wiki.example%2eevil.example/", False),
        ("ftp://wiki.example/", False),
        ("https://", False),
        ("", False),
        ("\ud800", False),
    ],
)
def test_a_rule_is_bound_to_its_origin(url: str, applies: bool) -> None:
    """Whatever else a URL holds."""
    sites = Sites([rule("wiki.example", WITH_KEY, "https")])
    assert (sites.for_url(url) is not None) is applies
    assert (sites.for_url(url) is not None) is applies, "and so it is out of the cache"


def test_all_urls_of_an_origin_have_one_site() -> None:
    """So that `is` tells whether a handle may be used again."""
    sites = Sites([rule("*.example", WITH_KEY, "http", "https")])
    site = sites.for_url("https://a.example/1")
    assert sites.for_url("https://A.example:443/2") is site
    assert sites.for_url("https://b.example/1") is not site
    assert sites.for_url("http://a.example/1") is not site
    assert sites.for_url("https://a.example/" + "x" * 5000) is site


def test_an_endless_host_is_not_remembered() -> None:
    """URLs that are all authority cannot fill the memory."""
    sites = Sites([rule("*.example", WITH_KEY, "https")])
    for number in range(3):
        assert sites.for_url(f"https://{number}{'x' * 400}.example/") is None
        assert sites.for_url(f"https://a.example?{number}{'x' * 400}/") is not None
    assert sites._of_prefix.cache_info().currsize == 0


def test_the_first_rule_that_sets_an_option_holds() -> None:
    """As in LARM_HOST_RULES: one table for all, single ones before it."""
    sites = Sites(
        [
            rule("wiki.example", WITH_KEY, "https"),
            rule("*.example", SiteOptions(verify=False, tls_min="1.2"), "http", "https"),
            rule("*", SiteOptions(verify=True, ca_file=Path("/ca")), "http", "https"),
        ]
    )
    wiki = sites.for_url("https://wiki.example/")
    assert wiki is not None
    assert wiki.rules == ("wiki.example", "*.example", "*")
    assert wiki.options == SiteOptions(
        headers=WITH_KEY.headers, verify=False, tls_min="1.2", ca_file=Path("/ca")
    )
    other = sites.for_url("http://wiki.example/")
    assert other is not None
    assert other.options.headers is None
    assert other.rules == ("*.example", "*")


def test_shows_no_secret() -> None:
    """Neither as a Site nor as the rules it came from."""
    sites = Sites([rule("wiki.example", WITH_KEY, "https")])
    site = sites.for_url("https://wiki.example/")
    assert "canary" not in f"{site} {site!r} {vars(sites)}"
    assert str(site) == "wiki.example: header Key"


@pytest.mark.parametrize("url", ["http://h/", "https://h:8443/x", "http://[::1]:81/", "no url"])
def test_without_a_file_there_are_no_sites(url: str) -> None:
    assert Sites.from_settings(Settings()).for_url(url) is None


def test_origins_have_their_port() -> None:
    assert origin_of("http://H.example.:8080/x") == ("http", "h.example", 8080)
    assert origin_of("https://[0::1]/x") == ("https", "[::1]", 443)
    assert origin_of("mailto:joe@h") is None


def test_the_setting_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    path.write_text('[[site]]\nhosts = "wiki:*"\nproxy = ""\n')
    sites = Sites.from_settings(Settings({"LARM_SITES_FILE": str(path)}))
    assert str(sites.for_url("http://wiki:81/x")) == f"{path} [[site]] 1 (wiki:*): no proxy"
    with pytest.raises(ConfigError, match=r"gone\.toml: No such file"):
        Sites.from_settings(Settings({"LARM_SITES_FILE": str(tmp_path / "gone.toml")}))
