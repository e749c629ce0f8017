"""robots.txt: RFC 9309 as its peers test it, and the files that hosts really serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.frontier.robots import (
    MAX_BYTES,
    MAX_LINE_BYTES,
    MAX_WILDCARDS,
    RobotsCache,
    RobotsRules,
    product_token,
)
from tests.support.frontier.memory_backend import MemoryBackend
from tests.support.frontier.simulation import AllowAll

AGENT = "larmspider/0.1 (+https://larmspider.example/)"
PEERS = Path(__file__).parents[2] / ".." / "shared" / "suites" / "google-robotstxt"

AGAINST_THE_RFC = {
    ("/foo/bar/ツ", "http://foo.bar/foo/bar/ツ"): (
        'RFC 9309 2.2.2: "Octets in the URI and robots.txt paths outside the range of the ASCII'
        ' coded character set [...] MUST be percent-encoded [...] prior to comparison"'
    ),
    ("/foo/bar/%E3%83%84", "http://foo.bar/foo/bar/ツ"): (
        "RFC 9309 2.2.2, the same sentence: the URL is encoded, too, before it is compared"
    ),
    ("/foo/bar/%62%61%7A", "http://foo.bar/foo/bar/baz"): (
        "RFC 9309 2.2.2, last row of its table of examples: the path /foo/bar/%62%61%7A is"
        " to match /foo/bar/baz"
    ),
}
"""Allow value and URL of the cases where the peer's answer is "refused" and the RFC's "allowed"."""


def _cases(name: str) -> list[dict[str, Any]]:
    path = PEERS / name
    return json.loads(path.read_text("utf-8"))["cases"] if path.exists() else []


def _against_the_rfc(case: dict[str, Any]) -> str | None:
    for (value, url), line in AGAINST_THE_RFC.items():
        if case["url"] == url and case["robots"].endswith(f"Allow: {value}\n"):
            return line
    return None


def _parse(text: str | bytes, agent: str = AGENT) -> RobotsRules:
    return RobotsRules.parse(text if isinstance(text, bytes) else text.encode(), agent)


needs_peers = pytest.mark.skipif(
    not PEERS.exists(), reason="peer data ../shared/suites/google-robotstxt is not here"
)


@needs_peers
def test_the_peer_suite_is_whole() -> None:
    """145 cases, of which exactly three contradict RFC 9309."""
    cases = _cases("is_allowed.json")
    assert len(cases) == 145
    assert sum(_against_the_rfc(case) is not None for case in cases) == 3


@needs_peers
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=f"{i}-{c['test']}") for i, c in enumerate(_cases("is_allowed.json"))],
)
def test_answers_as_the_peer_or_as_the_rfc(case: dict[str, Any]) -> None:
    """142 answers are the peer's own; the other three follow the line of the RFC quoted above."""
    rules = _parse(case["robots"], case["agent"])
    assert rules.allowed(case["url"]) is (case["allow"] or _against_the_rfc(case) is not None)


@needs_peers
@pytest.mark.parametrize("case", _cases("is_allowed.json"), ids=lambda case: case["test"])
def test_the_deciding_line_agrees_with_the_verdict(case: dict[str, Any]) -> None:
    """A refused URL has a disallow line, an allowed one an allow line or none at all."""
    rules = _parse(case["robots"], case["agent"])
    deciding = rules.deciding_line(case["url"])
    if deciding is None:
        assert rules.allowed(case["url"])
    else:
        number, text = deciding
        assert case["robots"].split("\n")[number - 1].startswith(text)
        assert ("disallow" in text.lower()) is not rules.allowed(case["url"])


@pytest.mark.parametrize(
    "user_agent, token",
    [
        (AGENT, "larmspider"),
        ("LarmSpider", "larmspider"),
        ("larmspider (test)", "larmspider"),
        ("Mozilla/5.0 (compatible; larmspider/0.1; +https://x.example)", "larmspider"),
        ("spider2/1.0", "spider2"),
        ("larm spider/0.1", ""),
        ("", ""),
        ("паук/1.0", ""),
    ],
)
def test_product_token_of_a_user_agent(user_agent: str, token: str) -> None:
    """A robots.txt calls us by the first product's name, without version and comment."""
    assert product_token(user_agent) == token


@pytest.mark.parametrize(
    "line",
    [
        "User-agent: larmspider",
        "user-agent : LARMSPIDER # ours",
        "User-agent: larmspider/2.1",
        "User-agent: larmspider crawler",
        "User-agent larmspider",
        "\tUserAgent:larmspider",
    ],
)
def test_a_group_is_ours_by_its_product_token(line: str) -> None:
    """Case, version, comment and blanks do not matter."""
    rules = _parse(f"User-agent: *\nDisallow: /\n\n{line}\nDisallow: /ours/\n")
    assert rules.allowed("http://wiki/")
    assert not rules.allowed("http://wiki/ours/")


@pytest.mark.parametrize("name", ["larm", "spider", "larmspider2", "larmspiders", "*spider", "l*"])
def test_a_group_for_a_similar_name_is_not_ours(name: str) -> None:
    """Product tokens are equal or different; a part is not enough."""
    rules = _parse(f"User-agent: {name}\nDisallow: /theirs/\n\nUser-agent: *\nDisallow: /all/\n")
    assert rules.allowed("http://wiki/theirs/")
    assert not rules.allowed("http://wiki/all/")


def test_several_groups_for_us_count_together() -> None:
    """RFC 9309 2.2.1: matching groups must be combined into one."""
    rules = _parse(
        "User-agent: larmspider\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\n"
        "User-agent: LARMSPIDER\nDisallow: /c\n"
    )
    assert [rules.allowed(f"http://wiki/{path}") for path in "abc"] == [False, True, False]


def test_our_own_empty_group_outweighs_the_star() -> None:
    """ "Disallow:" without a value allows everything to the agent it is said to."""
    rules = _parse("User-agent: *\nDisallow: /\n\nUser-agent: larmspider\nDisallow:\n")
    assert rules.allowed("http://wiki/")
    assert rules.deciding_line("http://wiki/") is None


@pytest.mark.parametrize(
    "between",
    ["Sitemap: http://wiki/s.xml", "Crawl-delay: 3", "Host: wiki", "Nonsense: 1", "", "#"],
)
def test_other_lines_do_not_end_the_list_of_agents(between: str) -> None:
    """RFC 9309 2.2.4: other records must not interfere with the rules."""
    rules = _parse(f"User-agent: larmspider\n{between}\nUser-agent: other\nDisallow: /x/\n")
    assert not rules.allowed("http://wiki/x/")


def test_a_sitemap_between_rules_does_not_end_the_group() -> None:
    """The rule after the Sitemap line is still ours."""
    rules = _parse("User-agent: *\nDisallow: /a\nSitemap: http://wiki/s.xml\nDisallow: /b\n")
    assert not rules.allowed("http://wiki/b")


def test_rules_before_any_agent_count_for_no_one() -> None:
    """RFC 9309 2.2.2: they should be ignored."""
    assert _parse("Disallow: /\nUser-agent: *\nDisallow: /x\n").allowed("http://wiki/")


@pytest.mark.parametrize(
    "rule, url, allowed",
    [
        ("/a", "http://wiki/a?b=c", False),
        ("/a", "http://wiki/A", True),
        ("/a$", "http://wiki/a", False),
        ("/a$", "http://wiki/a/", True),
        ("/*.pdf$", "http://wiki/x/y.pdf", False),
        ("/*.pdf$", "http://wiki/x/y.pdf?v=1", True),
        ("/*?print=", "http://wiki/page?print=1", False),
        ("/*?print=", "http://wiki/page/print=1", True),
        ("/", "http://wiki", False),
        ("/", "http://wiki?x=1", False),
        ("/", "http://wiki/robots.txt", True),
        ("/a", "http://wiki/b#/a", True),
        ("/a b", "http://wiki/a%20b", False),
        ("/%7Eanna/", "http://wiki/~anna/", False),
        ("/~anna/", "http://wiki/%7eanna/", False),
        ("/a%2Fb", "http://wiki/a/b", True),
        ("/übung", "http://wiki/%C3%BCbung", False),
        ("/%c3%bcbung", "http://wiki/%C3%BCbung", False),
        ("/%FCbung", "http://wiki/%fcbung", False),
        ("/%FCbung", "http://wiki/%E4bung", True),
        ("/%FCbung", "http://wiki/%ECbung", True),
        ("/x", "http://wiki/x\ud800", False),
        ("/a\x0cDisallow: /b", "http://wiki/b", True),
        ("/a\u2028Disallow: /b", "http://wiki/b", True),
    ],
)
def test_one_rule_matches(rule: str, url: str, allowed: bool) -> None:
    """Prefixes, wildcards and escapes of one disallow line (RFC 9309 2.2.2 and 2.2.3)."""
    assert _parse(f"User-agent: *\nDisallow: {rule}\n").allowed(url) is allowed


def test_bytes_that_are_not_utf8_match_their_own_escape() -> None:
    """A Latin-1 file's "ü" is byte FC, and a Latin-1 host's URLs say %FC."""
    rules = _parse("User-agent: *\nDisallow: /übung\n".encode("latin-1"))
    assert not rules.allowed("http://wiki/%FCbung")
    assert rules.allowed("http://wiki/%E4bung")
    assert rules.deciding_line("http://wiki/%FCbung") == (2, "Disallow: /übung")


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /x\n",
        "\ufeffUser-agent: *\nDisallow: /x\n".encode("utf-16-le"),
        "\ufeffUser-agent: *\nDisallow: /x\n".encode("utf-16-be"),
        b"User-agent: *\rDisallow: /x\r",
        b"User-agent: *\r\nDisallow: /x\r\n",
        b"User-agent: *\nDisallow: /x",
        b"User-\0agent: *\nDis\0allow: /x\0\n",
        b"\xff\xfbUser-agent: x\nUser-agent: *\nDisallow: /x\n",
    ],
)
def test_reads_marks_line_ends_and_stray_bytes(body: bytes) -> None:
    """Byte-order marks, CR, CRLF, a missing last line end and NULs hide no rule."""
    rules = _parse(body)
    assert not rules.allowed("http://wiki/x")
    assert rules.allowed("http://wiki/y")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"\0\0\0",
        b":\n: :\n:::",
        b"<!DOCTYPE html>\n<title>Not found</title>\n<p>User-agent: *\n<p>Disallow: /\n",
        b"\x1f\x8b\x08\x00gzip",
    ],
)
def test_a_body_without_rules_allows_everything(body: bytes) -> None:
    """What is not a rule is passed over, be it a web page or noise."""
    rules = _parse(body)
    assert rules.allowed("http://wiki/x")
    assert (rules.crawl_delay, rules.sitemaps) == (None, [])


def test_reads_half_a_mebibyte_and_cuts_at_a_line_end() -> None:
    """The rule that the limit falls into is dropped: its first half would be another rule."""
    head = b"User-agent: *\nDisallow: /first/\n"
    last = b"Disallow: /archive/2001/\n"
    filler = b"#" * (MAX_BYTES - len(head) - len(b"\nDisallow: /a")) + b"\n"
    rules = _parse(head + filler + last)
    assert not rules.allowed("http://wiki/first/")
    assert rules.allowed("http://wiki/archive/2001/")
    assert rules.allowed("http://wiki/about/")
    whole = _parse(head + b"#\n" + last)
    assert not whole.allowed("http://wiki/archive/2001/")


def test_cuts_a_line_that_is_too_long() -> None:
    """What stands beyond 16,663 bytes of a line is not read."""
    path = "/" + "a" * (MAX_LINE_BYTES - len("Disallow: /"))
    rules = _parse(f"User-agent: *\nDisallow: {path}zzz\n")
    assert not rules.allowed(f"http://wiki{path}")
    assert rules.allowed(f"http://wiki{path[:-1]}")


@pytest.mark.parametrize(
    "lines, delay",
    [
        ("Crawl-delay: 2.5", 2.5),
        ("crawl-delay:0", 0.0),
        ("Crawl-delay: 2\nCrawl-delay: 7\nCrawl-delay: 5", 7.0),
        ("Crawl-delay: soon", None),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: inf", None),
        ("Crawl-delay: nan", None),
        ("Crawl-delay:", None),
        ("User-agent: other\nDisallow: /\nCrawl-delay: 9", 9.0),
        ("Disallow: /\nUser-agent: other\nCrawl-delay: 9", None),
        ("Disallow: /\nUser-agent: larmspider\nCrawl-delay: 9", 9.0),
    ],
)
def test_crawl_delay(lines: str, delay: float | None) -> None:
    """Seconds, the longest that our group asks for; nonsense asks for nothing."""
    assert _parse(f"User-agent: larmspider\n{lines}\n").crawl_delay == delay


def test_sitemaps_are_listed_once_whoever_they_stand_with() -> None:
    """In their order, whatever group they stand in; a missing colon is forgiven."""
    rules = _parse(
        "Sitemap: http://wiki/b.xml\nUser-agent: other\nsitemap: http://wiki/a.xml # all\n"
        "Sitemap http://wiki/c.xml?x=1:2\nSitemap: http://wiki/b.xml\nSitemap:\n"
    )
    assert rules.sitemaps == ["http://wiki/b.xml", "http://wiki/a.xml", "http://wiki/c.xml?x=1:2"]


@pytest.mark.parametrize(
    "url, deciding",
    [
        ("http://wiki/private/plan.html", (2, "Disallow: /private/   # staff")),
        ("http://wiki/private/rota.html", (3, "Allow: /private/rota.html")),
        ("http://wiki/private/rota.html?month=5", (5, "Disallow: /*/rota.html?month=")),
        ("http://wiki/tie", (8, "Allow: /tie")),
        ("http://wiki/", None),
    ],
)
def test_names_the_line_that_decides(url: str, deciding: tuple[int, str] | None) -> None:
    """The longest match wins, allow wins a tie, and its line is told by number and text."""
    rules = _parse(
        "User-agent: *\nDisallow: /private/   # staff\nAllow: /private/rota.html\n\n"
        "Disallow: /*/rota.html?month=\n# a tie\nDisallow: /tie\nAllow: /tie\n"
    )
    assert rules.deciding_line(url) == deciding


def test_wildcards_behind_the_limit_refuse_more_never_less() -> None:
    """A Disallow is read up to its first one, an Allow not at all; rules without any count on."""
    rules = _parse(
        "User-agent: *\n"
        + "Disallow: /x/*a*b$\n" * (MAX_WILDCARDS // 2)
        + "Disallow: /cut/*.pdf$\nAllow: /plain/*.html\nDisallow: /plain/\n"
    )
    assert rules.allowed("http://wiki/x/plan.html")
    assert not rules.allowed("http://wiki/x/a.b")
    assert not rules.allowed("http://wiki/cut/plan.html")
    assert not rules.allowed("http://wiki/plain/plan.html")
    decides = rules.deciding_line("http://wiki/cut/plan.html")
    assert decides == (MAX_WILDCARDS // 2 + 2, "Disallow: /cut/*.pdf$")


_LINES = st.sampled_from(
    [
        *(
            "User-agent: *",
            "User-agent: larmspider",
            "User-agent: other",
            "Crawl-delay: 1",
            "",
            "x",
        ),
        *("Disallow: /", "Disallow: /a", "Disallow: /*b$", "Disallow: /a*", "Disallow: /b$"),
        *(
            "Allow: /a",
            "Allow: /ab",
            "Allow: /$",
            "Allow: *",
            "Allow: /a/index.html",
            "Allow: /a$b",
        ),
    ]
)


@given(st.lists(_LINES, max_size=12), st.text("ab/$?*", max_size=6))
def test_verdict_and_line_agree_in_any_file(lines: list[str], path: str) -> None:
    """No line means allowed; a line means what it says."""
    rules, url = _parse("\n".join(lines)), f"http://wiki/{path}"
    deciding = rules.deciding_line(url)
    assert rules.allowed(url) is (deciding is None or deciding[1].startswith("Allow"))
    assert deciding is None or lines[deciding[0] - 1] == deciding[1]


@given(st.binary(max_size=400), st.text(max_size=40), st.text(max_size=40))
def test_never_raises(body: bytes, agent: str, url: str) -> None:
    """Any body, any agent, any string for a URL: an answer."""
    rules = RobotsRules.parse(b"User-agent: *\nDisallow: /" + body, agent)
    assert rules.allowed(url) in (True, False)
    rules.deciding_line(url)


# Rules that are held, and rules that are parsed again.


def test_how_many_are_held_goes_by_the_length_of_the_files() -> None:
    """A thousand of half a megabyte would be 20 GB of rules."""
    cache = RobotsCache(MemoryBackend(), lambda body: AllowAll(), held_bytes=10_000)
    for number in range(20):
        cache.put(f"h{number}:80", b"")
    assert len(cache) == 10
    cache.put("large:80", b"#" * 8_000)
    assert len(cache) == 3
    cache.put("larger:80", b"#" * 80_000)
    assert len(cache) == 1
    for number in range(20):
        cache.of(f"h{number}:80")
    assert len(cache) == 10


def test_the_least_used_are_dropped_and_parsed_again() -> None:
    parsed: list[bytes] = []

    def parse(body: bytes) -> AllowAll:
        parsed.append(body)
        return AllowAll()

    cache = RobotsCache(MemoryBackend(), parse, held_bytes=2_000)
    cache.put("a:80", b"a")
    cache.put("b:80", b"b")
    kept = cache.of("a:80")
    cache.put("c:80", b"c")
    assert cache.of("a:80") is kept
    cache.of("b:80")
    assert parsed == [b"a", b"b", b"c", b"b"]
