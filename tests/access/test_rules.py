from __future__ import annotations

import time

import pytest

from larmspider.access.lists import AccessList, UnreadableError
from larmspider.access.rights import Document
from larmspider.access.rules import MAX_RULES, Rules
from larmspider.access.sent import Sent
from larmspider.errors import ConfigError

_RULES = Rules.of(
    {
        "/hr/*": ["group:hr"],
        "wiki.example/board/*": ["group:board"],
        "file:///srv/share/Ä b/*": ["user:anna"],
        "https://a.example:8443/*": "group:a",
        "/plan.html": ["group:plan"],
        "/*.secret": ["group:secret"],
        "https://*.b.example/*": ["group:b"],
    }
)


@pytest.mark.parametrize(
    ("url", "number"),
    [
        ("http://wiki.example/hr/a", 0),
        ("http://wiki.example/hr", 0),
        ("http://wiki.example/hr/", 0),
        ("http://wiki.example/HR/a", 0),
        ("http://wiki.example/%68r/a", 0),
        ("http://wiki.example//hr//a", 0),
        ("http://wiki.example/\\hr\\a", 0),
        ("http://wiki.example/hr?all", 0),
        ("http://wiki.example/hr/a%0Ab", 0),
        ("http://wiki.example/hr/a?b=%0a%0d%E2%80%A8", 0),
        ("http://x/a%0Ab.secret", 5),
        ("http://wiki.example/hrx/a", None),
        ("http://wiki.example/a/hr/a", None),
        ("http://wiki.example/board/a", 1),
        ("http://wiki.example:8080/board/a", 1),
        ("http://other.example/board/a", None),
        ("http://evil.example/wiki.example/board/a", None),
        ("file:///srv/share/%C3%84%20b/c", 2),
        ("file:///srv/share/hr/c", None),
        ("https://a.example:8443/", 3),
        ("https://a.example:8443", 3),
        ("http://a.example:8443/", None),
        ("http://x/plan.html", 4),
        ("http://x/plan.html?v=2", 4),
        ("http://x/plan.htm", None),
        ("http://x/a/b.secret", 5),
        ("https://c.b.example/", 6),
    ],
)
def test_the_first_rule_that_fits(url: str, number: int | None) -> None:
    assert _RULES.number_of(url) == number


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("/*/hr/*/plan/*", "http://x/a/hr/b/plan/c", True),
        ("/*/hr/*/plan/*", "http://x/a/hr/hr/planx/plan", True),
        ("/*/hr/*/plan/*", "http://x/a/hr/b/planx", False),
        ("/*a/*", "http://x/xay/a/b", True),
        ("/**.pdf", "http://x/a.pdf.pdf", True),
        ("/*.pdf*.pdf", "http://x/a.pdf", False),
        ("x/a*b*c", "http://x/abcbc", True),
        ("*/hr/*", "http://x/a/hr/b", True),
        ("/hr%2A/*", "http://x/hr*/a", True),
        ("/hr%2A/*", "http://x/hrx/a", False),
    ],
)
def test_patterns_of_several_stars(pattern: str, url: str, fits: bool) -> None:
    assert (Rules.of({pattern: ["group:hr"]}).number_of(url) == 0) is fits


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("/hr/*", "http://x/a/..%2Fhr/b"),
        ("/hr/*", "http://x/a/..%5Chr/b"),
        ("/hr/*", "http://x/a/..;b/hr/c"),
        ("/hr/*", "http://x/hr;jsessionid=1/a"),
        ("/hr/*", "http://x/;a/hr/b"),
        ("/hr;1/*", "http://x/hr;1/a"),
        ("/%C3%9Cbersicht/*", "http://x/%C3%BCbersicht/a"),
        ("/%48R/*", "http://x/hr/a"),
        ("/bu\u0308ro/*", "http://x/b%C3%BCro/a"),
        ("/b\xfcro/*", "http://x/bu%CC%88ro/a"),
        ("/b\xfcro/*", "http://x/b%FCro/a"),
        ("b\xfccher.example/*", "http://xn--bcher-kva.example/a"),
        ("https://*.b\xfccher.example/*", "https://a.xn--bcher-kva.example/a"),
        ("Wiki.example.:80/*", "http://wiki.example/a"),
        ("https://wiki.example:443/*", "https://wiki.example/a"),
        ("[::1]/hr/*", "http://[::1]:8080/hr/a"),
        ("http://[0::1]:8080/hr/*", "http://[::1]:8080/hr/a"),
        ("http://x//hr/*", "http://x/hr/a"),
    ],
)
def test_other_spellings_of_what_a_rule_hides(pattern: str, url: str) -> None:
    assert Rules.of({pattern: ["group:hr"]}).number_of(url) == 0


@pytest.mark.parametrize(
    "url", ["http://x/public/..%2Fhr/a", "http://x/public/..;/hr/a", "http://x/public/%2e%2e/hr"]
)
def test_a_trick_opens_nothing(url: str) -> None:
    assert Rules.of({"/public/*": ["everyone"], "/*": ["group:hr"]}).number_of(url) == 1


def test_many_stars_take_no_time() -> None:
    rules = Rules.of({"/*a*a*a*a*a*a*b/": ["group:hr"], "/*/a/*/a/*/a/*/b/*": ["group:it"]})
    for url in ("http://x/" + "a" * 2_000, "http://x/" + "a/" * 1_000):
        began = time.process_time()
        assert rules.number_of(url) is None
        assert time.process_time() - began < 1.0


def test_a_star_is_all() -> None:
    rules = Rules.of({"/hr/*": ["group:hr"], "*": ["everyone"]})
    found = rules.access_of(Document("file:///srv/a"))
    assert found is not None
    assert found.list.is_for_everyone
    assert rules.number_of("http://x/hr/") == 0


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"/hr/*": ["hr"]}, "/hr/.*'hr' is not a principal: expected everyone"),
        ({"/hr/*": ["group:"]}, "is not a principal"),
        ({"/hr/*": ["uid:anna"]}, "uid:anna' is not a principal: .* uid:NUMBER"),
        ({"/hr/*": ["gid:-1"]}, "gid:-1' is not a principal"),
        ({"/hr/*": ["uid:0x3e8"]}, "uid:0x3e8' is not a principal"),
        ({"/hr/*": ["sid:CORP\\anna"]}, "is not a principal: .* sid:SID"),
        ({"/hr/*": ["sid:S-1-5-"]}, "is not a principal"),
        ({"/hr/*": 3}, "expected a list of principals"),
        ({"hr": ["group:hr"]}, "expected \\* or a pattern with a path"),
        ({"": ["group:hr"]}, "expected a pattern"),
        ({"/a/../hr/*": ["group:hr"]}, "has a segment of dots"),
        ({"wi ki/hr/*": ["group:hr"]}, "'wi ki' is not the name of a host"),
        ({"http://anna@wiki/*": ["group:hr"]}, "is not the name of a host"),
        ({"/" + "*a" * 9: ["everyone"]}, "9 stars; expected at most 8"),
        ({f"/{n}": [] for n in range(MAX_RULES + 1)}, "1,001 rules; expected at most 1,000"),
    ],
)
def test_bad_rules_are_refused(table: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Rules.of(table)


_SENT = Sent.of({"cms.example": "X-Access", "*.wiki.example:*": "meta:readers"})


def _sent(url: str, *values: str, body: bytes = b"") -> list[str]:
    headers = {b"X-Access": [value.encode("latin-1") for value in values]} if values else {}
    found = _SENT.access_of(Document(url, headers, body, "text/html"))
    assert found is not None
    return found.list.principals


def test_a_header_of_a_trusted_host() -> None:
    assert _sent("http://cms.example/a", "group:hr, user:anna") == ["group:hr", "user:anna"]
    assert _sent("http://cms.example/a", "group:hr", "everyone") == ["everyone", "group:hr"]
    assert _sent("http://cms.example/a", "") == []
    other = Document("http://other.example/a", {b"X-Access": [b"everyone"]})
    assert _SENT.access_of(other) is None
    assert _SENT.access_of(Document("http://cms.example:81/a", {})) is None
    assert _SENT.access_of(Document("http://cms.example/a")) is None


@pytest.mark.parametrize("value", ["hr", "group:hr,everybody", "\xff\xfe", "x" * 100_001])
def test_a_value_that_cannot_be_read(value: str) -> None:
    with pytest.raises(UnreadableError):
        _sent("http://cms.example/a", value)


def test_a_missing_value_cannot_be_read() -> None:
    with pytest.raises(UnreadableError, match="has not sent X-Access"):
        _sent("http://cms.example/a")
    with pytest.raises(UnreadableError, match="has not sent meta:readers"):
        _sent("http://a.wiki.example/", body=b"<p>hello")


@pytest.mark.parametrize("section", [b"<![if !IE]>", b"<![x y]>", b"<![ >", b"<![CDATA[x]]>"])
def test_marked_sections_are_comments(section: bytes) -> None:
    """As browsers read them: Python's parser raises an AssertionError for some."""
    good = b"<html><head>" + section + b"<meta name=readers content='group:hr'>"
    assert _sent("http://a.wiki.example/", body=good) == ["group:hr"]
    with pytest.raises(UnreadableError):
        _sent("http://a.wiki.example/", body=section * 2)


def test_a_meta_element_in_the_head_alone() -> None:
    url = "http://a.wiki.example:8080/"
    good = b"<html><head><title>a &lt;b</title><meta name=Readers content='group:hr'></head><body>"
    assert _sent(url, body=good) == ["group:hr"]
    twice = b"<meta name=readers content=group:hr content=everyone>"
    assert _sent(url, body=twice) == ["group:hr"]
    for late in (
        b"<title>x</title>text<meta name=readers content=everyone>",
        b"<head></head><meta name=readers content=everyone>",
        b"<p><meta name=readers content=everyone>",
        b"<!-- <meta name=readers content=everyone> --><p>",
        b"<title><meta name=readers content=everyone></title>",
        b"<script>'<meta name=readers content=everyone>'</script><p>",
    ):
        with pytest.raises(UnreadableError):
            _sent(url, body=late)


@pytest.mark.parametrize(
    "table", [{"cms.example": "X Access"}, {"cms example": "X"}, {"cms.example": "meta:"}, {"a": 3}]
)
def test_bad_hosts_are_refused(table: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="LARM_ACCESS_SENT"):
        Sent.of(table)


def test_a_list_is_one_of_its_kind() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        AccessList.unpack(AccessList("other").pack())
