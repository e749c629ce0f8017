"""larmspider/urls/host_pattern.py: which hosts, schemes and ports a pattern is meant for."""

from __future__ import annotations

import pytest

from larmspider.errors import ConfigError
from larmspider.urls.host_pattern import HostPattern, host_matcher


@pytest.mark.parametrize(
    "pattern, scheme, host, port, expected",
    [
        ("wiki", "https", "wiki", 443, True),
        ("wiki", "http", "wiki", 80, True),
        ("wiki", "https", "wiki", 8443, False),
        ("wiki", "https", "wiki", 80, False),
        ("wiki:8443", "https", "wiki", 8443, True),
        ("wiki:8443", "https", "wiki", 443, False),
        ("wiki:*", "https", "wiki", 8443, True),
        ("wiki:*", "http", "wiki", 80, True),
        ("https://wiki", "https", "wiki", 443, True),
        ("https://wiki/", "https", "wiki", 443, True),
        ("https://wiki", "http", "wiki", 80, False),
        ("http://wiki:8080", "http", "wiki", 8080, True),
        ("http://wiki:8080", "https", "wiki", 8080, False),
        ("WIKI.Example", "https", "wiki.example", 443, True),
        ("wiki.example.", "https", "wiki.example", 443, True),
        ("wiki.example", "https", "wikixexample", 443, False),
        ("wiki.example", "https", "wiki.example.evil.example", 443, False),
        ("*.intra.example", "https", "a.b.intra.example", 443, True),
        ("*.intra.example", "https", "intra.example", 443, False),
        ("*.intra.example", "https", "a.intra.example.evil.example", 443, False),
        ("*.intra.example", "https", "evilintra.example", 443, False),
        ("wiki?.example", "https", "wiki2.example", 443, True),
        ("wiki?.example", "https", "wiki.example", 443, False),
        ("10.1.*", "http", "10.1.2.3", 80, True),
        ("10.1.*", "http", "10.1.evil.example", 80, False),
        ("10.1.2.?", "http", "10.1.2.3", 80, True),
        ("*", "http", "any.host.example", 80, True),
        ("[::1]:8080", "http", "[::1]", 8080, True),
        ("[0:0::1]", "http", "[::1]", 80, True),
        ("0x7f.1", "http", "127.0.0.1", 80, True),
        ("bücher.example", "https", "xn--bcher-kva.example", 443, True),
    ],
)
def test_matches(pattern: str, scheme: str, host: str, port: int, expected: bool) -> None:
    """Scheme, host and port all count; a pattern without a port means its scheme's own."""
    assert HostPattern.parse(pattern).matches(scheme, host, port) is expected


@pytest.mark.parametrize(
    "pattern, host, expected",
    [
        ("*.Case.example", "a.case.example", True),
        ("wiki?", "wiki", False),
        ("wiki[ab]", "wikib", True),
        ("[::1]:8?", "[::1]:81", True),
        ("[::1]", "1", False),
    ],
)
def test_a_matcher_knows_wildcards_sets_and_addresses(
    pattern: str, host: str, expected: bool
) -> None:
    """One matcher for every setting and file; brackets of an address are no set."""
    assert bool(host_matcher("other", pattern)(host)) is expected
    assert not host_matcher()(host)


@pytest.mark.parametrize(
    "pattern",
    [
        "", "http://", "ftp://wiki", "wiki/path", "wiki?q=1&x=/", "wiki:0", "wiki:99999", "wiki:x",
        "wiki:80:80", "wi ki", "*.bücher.example", "[::1", "wiki#top", "a..b", "[*]",
    ],
)  # fmt: skip
def test_refuses_what_could_never_match(pattern: str) -> None:
    """And says what is expected."""
    with pytest.raises(ConfigError, match="is no pattern for hosts"):
        HostPattern.parse(pattern)


def test_a_user_name_in_a_pattern_is_not_shown() -> None:
    """Whoever writes one there means a password."""
    with pytest.raises(ConfigError) as caught:
        HostPattern.parse("https://joe:canary@wiki")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern, bounded",
    [
        ("wiki", True),
        ("*.intra.example", True),
        ("wiki*.example", True),
        ("10.1.*", True),
        ("wiki*", False),
        ("*", False),
        ("wiki.ex?mple", False),
        ("[::1]", True),
    ],
)
def test_knows_whether_strangers_can_match(pattern: str, bounded: bool) -> None:
    """Anybody can have wiki.elsewhere.example; nobody else has our top label, or our addresses."""
    assert HostPattern.parse(pattern).is_bounded is bounded


@pytest.mark.parametrize("text", ["wiki", "https://wiki:*", "http://*.intra:8080", "[::1]:1"])
def test_shows_as_it_was_written(text: str) -> None:
    assert str(HostPattern.parse(text)) == text
    assert HostPattern.parse(str(HostPattern.parse(text))) == HostPattern.parse(text)
