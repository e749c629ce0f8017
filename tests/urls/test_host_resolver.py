"""LARM's host rules: what each keyword does, that resolving is idempotent, and what errors say."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from scrapy.settings import Settings

from larmspider.errors import ConfigError, InvalidURL
from larmspider.urls.canonical import canonicalize
from larmspider.urls.host_resolver import HostResolver, add_rule, property_line
from larmspider.urls.normalizer import host_resolver_from_settings

RULES = """\
# names of the intranet
startsWith(www.)=
startsWith(www2.) = web.

endsWith(.old.example)=.example
endsWith(,lan) : .site.lan
! a chain
synonym(10.0.0.7)=wiki.example
synonym(w3)=\\
    10.0.0.7
synonym(b\\u00fccher.example)=books.example
synonym([\\:\\:2])=wiki.example
"""


@pytest.mark.parametrize(
    "host, expected",
    [
        ("www.a.example", "a.example"),
        ("WWW.A.example", "a.example"),
        ("www.www.a.example", "a.example"),
        ("wwwa.example", "wwwa.example"),
        ("www2.a.example", "web.a.example"),
        ("a.www.example", "a.www.example"),
        ("a.old.example", "a.example"),
        ("a.old.old.example", "a.example"),
        ("www.a.old.example", "a.example"),
        ("old.example", "old.example"),
        ("x.lan", "x.site.lan"),
        ("x.site.lan", "x.site.lan"),
        ("10.0.0.7", "wiki.example"),
        ("w3", "wiki.example"),
        ("www.w3", "wiki.example"),
        ("xn--bcher-kva.example", "books.example"),
        ("a.example", "a.example"),
        ("[::1]", "[::1]"),
        ("[::2]", "wiki.example"),
        ("www.1.2", "www.1.2"),  # 1.2 is an address, and another one: 1.0.0.2
    ],
)
def test_rules_map_hosts(host: str, expected: str) -> None:
    """startsWith, endsWith and synonym, in this order, until nothing changes."""
    resolver = HostResolver.from_properties(RULES)
    assert resolver.resolve(host) == expected
    assert resolver.resolve(expected) == expected


@pytest.mark.parametrize(
    "rules, host, expected",
    [
        ("startsWith(w)=x\nstartsWith(www.)=", "www.h", "h"),
        ("startsWith(www.)=\nstartsWith(w)=x", "www.h", "h"),
        ("endsWith(.example)=.b\nendsWith(.a.example)=.c", "h.a.example", "h.c"),
        ("synonym(a)=www.b\nstartsWith(www.)=", "a", "b"),
        ("synonym(www.a)=b\nstartsWith(www.)=", "www.a", "a"),
        ("startsWith(www)=www2", "www.h", "www2.h"),
        ("startsWith(www)=www2", "www2.h", "www2.h"),
        ("endsWith(.example)=", "www.example", "www"),
        ("endsWith(example)=", "example", "example"),
        ("endsWith(.a)=.c.b\nendsWith(.b)=.c.a", "h.a", "h.a"),
        ("startsWith(a.)=b.\nstartsWith(b.)=a.", "b.h", "a.h"),
        ("startsWith(c.)=b.\nstartsWith(a.)=b.\nstartsWith(b.)=a.", "c.h", "a.h"),
        ("synonym(Münch.example.)=[::1]", "xn--mnch-0ra.example", "[::1]"),
        ("synonym([\\:\\:1])=localhost", "[::1]", "localhost"),
        ("", "www.h", "www.h"),
        ("# nothing\n\n", "www.h", "www.h"),
    ],
)
def test_order_length_and_circles(rules: str, host: str, expected: str) -> None:
    """The longest part wins, results are not fed to their own rule, circles have one name."""
    resolver = HostResolver.from_properties(rules)
    assert resolver.resolve(host) == expected
    assert resolver.resolve(expected) == expected


def test_explain_names_the_rules_that_led_there() -> None:
    """In the order of their use, with file and line; none where nothing was changed."""
    resolver = HostResolver.from_properties(RULES, "hosts.properties")
    assert resolver.explain("www.W3") == [
        "startsWith(www.)= (hosts.properties:2)",
        "synonym(w3)=10.0.0.7 (hosts.properties:9)",
        "synonym(10.0.0.7)=wiki.example (hosts.properties:8)",
    ]
    assert resolver.explain("x.lan") == ["endsWith(.lan)=.site.lan (hosts.properties:6)"]
    assert resolver.explain("x.site.lan") == resolver.explain("wiki.example") == []
    assert resolver.explain("xn--bcher-kva.example")[0].endswith(":11)")


@pytest.mark.parametrize(
    "url, expected",
    [
        ("http://www.h/a?b=http://www.h/", "http://h/a?b=http://www.h/"),
        ("https://www.h:8443/", "https://h:8443/"),
        ("http://[::1]/", "http://six/"),
        ("http://[::1]:81/x", "http://six:81/x"),
        ("http://h4:81/x", "http://[::4]:81/x"),
        ("http://h/www.h", "http://h/www.h"),
    ],
)
def test_apply_replaces_the_host_of_a_canonical_url(url: str, expected: str) -> None:
    """Port, path and query stay, the result is canonical."""
    resolver = HostResolver.from_properties(
        "startsWith(www.)=\nsynonym([\\:\\:1])=six\nsynonym(h4)=[::4]"
    )
    assert resolver.apply(url) == canonicalize(expected) == expected
    assert resolver.apply(expected) == expected


def test_apply_gives_the_same_object_where_nothing_changes() -> None:
    """With rules and without."""
    url = canonicalize("http://A.example:81/b")
    assert HostResolver().apply(url) is url
    assert HostResolver.from_properties("").apply(url) is url
    assert HostResolver.from_properties(RULES).apply(url) is url


_LABEL = st.sampled_from(["a", "b", "www", "a.b", "b.a", "1", "x1"])
_PART = st.sampled_from(
    ["a", "b", "a.", "b.", ".a", ".b", "www.", "www", ".a.b", ".b.a", "1", ".1", "."]
)
_RULE = st.one_of(
    st.builds("startsWith({})={}".format, _PART, _PART | st.just("")),
    st.builds("endsWith({})={}".format, _PART, _PART | st.just("")),
    st.builds(
        "synonym({})={}".format, st.sampled_from("abc"), st.sampled_from(["b", "www.c", "d.a"])
    ),
)


@given(st.lists(_RULE, max_size=6), st.lists(_LABEL, min_size=1, max_size=4).map(".".join))
def test_resolving_is_idempotent(rules: list[str], host: str) -> None:
    """apply(apply(u)) == apply(u), and the result is canonical, whatever the rules."""
    try:
        resolver = HostResolver.from_properties("\n".join(rules))
        url = canonicalize(f"http://{host}:81/")
    except (ConfigError, InvalidURL):  # rules that contradict each other; no address
        reject()
    once = resolver.apply(url)
    assert resolver.apply(once) == once
    assert canonicalize(once) == once


@pytest.mark.parametrize(
    "line, message",
    [
        ("startswith(www.)=", "unknown keyword 'startswith', write startsWith (case matters)"),
        ("SYNONYM(a)=b", "unknown keyword 'SYNONYM', write synonym (case matters)"),
        ("contains(www.)=", "unknown keyword 'contains'; expected startsWith(part)"),
        ("startsWith(www.=", "lacks a parenthesis; expected startsWith(part)"),
        ("startsWith www.)=", "lacks a parenthesis"),
        ("startsWith (www.)=", "lacks a parenthesis"),
        ("startsWith( www. )=", "a space; these need a backslash: synonym([\\:\\:1])=host;"),
        ("synonym([::1])=x", "a space; these need a backslash"),
        ("synonym(a=b)=x", "a space; these need a backslash"),
        ("www.=", "lacks a parenthesis"),
        ("startsWith()=www.", "nothing stands between the parentheses"),
        ("synonym( )=a", "lacks a parenthesis"),
        ("synonym(a)=", "'' is not a host name; expected a name such as wiki.example"),
        ("synonym(a)=http://b/", "'http://b/' is not a host name"),
        ("synonym(a)=b:80", "'b:80' is not a host name"),
        ("synonym(a)=b # note", "'b # note' is not a host name"),
        ("synonym(a)=1.2.3.256", "'1.2.3.256' is not a host name"),
        ("synonym(a)=.b", "'.b' is not a host name"),
        ("synonym(a/b)=c", "'a/b' is not a host name"),
        ("synonym(a)=\\ud800", r"'\ud800' is not a host name"),
        ("startsWith(www.)=a/", "'a/' is not part of a host name; expected letters"),
        ("startsWith(www.)=a..b", "'a..b' is not part of a host name"),
        ("endsWith(.münchen)=.example", r"'.m\xfcnchen' is not part of a host name"),
        ("startsWith(www.)=web.", "contradicts line 1, where its value is ''"),
        ("startsWith(WWW,)=web.", "contradicts line 1, where its value is ''"),
    ],
)
def test_an_error_names_file_line_and_what_is_expected(line: str, message: str) -> None:
    """The wrong line is the fourth: a comment and a continued line come before it."""
    text = f"startsWith(www.)=\n# comment\nsynonym(x)=\\\r\n  y\r{line}\n"
    with pytest.raises(ConfigError) as raised:
        HostResolver.from_properties(text, "hosts.properties")
    assert str(raised.value).startswith("hosts.properties:5: ")
    assert message in str(raised.value)
    assert "expected" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_broken_escape_names_file_and_line() -> None:
    """Java refuses such a file too."""
    with pytest.raises(ConfigError, match=r"hosts: at or after line 2: .*u12.*expected"):
        HostResolver.from_properties("synonym(a)=b\nsynonym(c)=\\u12\n", "hosts")


def test_the_same_rule_twice_is_one() -> None:
    """Files are often pasted together."""
    twice = "startsWith(www.)=\nstartsWith(WWW,)=\n"
    assert len(HostResolver.from_properties(twice).rules) == 1


@pytest.mark.parametrize(
    "text",
    [
        "synonym(a)=a",
        "synonym(a)=b\nsynonym(b)=a",
        "synonym(x)=a\nsynonym(a)=b\nsynonym(b)=c\nsynonym(c)=a",
    ],
)
def test_a_circle_of_synonyms_is_an_error(text: str) -> None:
    """All rules of the circle are named, and only those."""
    with pytest.raises(ConfigError, match="circle") as raised:
        HostResolver.from_properties(text, "hosts")
    assert "synonym(a)=" in str(raised.value)
    assert "synonym(x)=" not in str(raised.value)


def test_from_file_reads_utf8(tmp_path: Path) -> None:
    """With or without a byte order mark; names for messages are the path as given."""
    path = tmp_path / "hosts.properties"
    path.write_bytes(b"\xef\xbb\xbfsynonym(b\xc3\xbccher.example)=b\r\n")
    resolver = HostResolver.from_file(path)
    assert resolver.resolve("xn--bcher-kva.example") == "b"
    assert resolver.explain("xn--bcher-kva.example")[0].endswith(f"({path}:1)")
    assert HostResolver.from_file(str(path)).rules == resolver.rules


def test_from_file_says_what_is_wrong(tmp_path: Path) -> None:
    """Missing, a folder, Latin-1, or no path at all: ConfigError with the path."""
    latin = tmp_path / "latin.properties"
    latin.write_bytes(b"# eins\nsynonym(b\xfccher.example)=b\n")
    with pytest.raises(ConfigError, match=r"latin\.properties:2: not UTF-8; expected"):
        HostResolver.from_file(latin)
    for path in (tmp_path / "missing", tmp_path, "a\0b"):
        with pytest.raises(ConfigError, match=re.escape(repr(os.fspath(path)))):
            HostResolver.from_file(path)


def test_a_chain_of_a_thousand_synonyms_resolves() -> None:
    """From any of its hosts to the last, in one pass."""
    text = "\n".join(f"synonym(h{n}.example)=h{n + 1}.example" for n in range(1000))
    resolver = HostResolver.from_properties(text)
    assert resolver.resolve("h999.example") == "h1000.example"
    assert resolver.resolve("h0.example") == "h1000.example"


def test_a_file_in_the_users_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``~/hosts.properties``, which not every shell resolves behind ``hostresolver=``."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "hosts.properties").write_text("startsWith(www.)=\n")
    settings = Settings({"LARM_HOST_RESOLVER_FILE": "~/hosts.properties"})
    assert host_resolver_from_settings(settings).resolve("www.h") == "h"


def test_a_rule_is_added_to_a_file(tmp_path: Path) -> None:
    """Its other lines stay as they were, also where the rule contradicts them."""
    path = tmp_path / "hosts.properties"
    add_rule(path, property_line("synonym", "b.example", "a.example"))
    path.write_text(path.read_text() + "# ours\nstartsWith(www.)=")
    add_rule(path, property_line("synonym", "[::1]", "a.example"))
    before = path.read_text()
    assert before.splitlines()[1:3] == ["# ours", "startsWith(www.)="]
    resolver = HostResolver.from_file(path)
    assert {resolver.resolve(host) for host in ("b.example", "[::1]", "www.a.example")} == {
        "a.example"
    }
    with pytest.raises(ConfigError, match="contradicts line 1"):
        add_rule(path, "synonym(b.example)=c.example")
    assert path.read_text() == before
    with pytest.raises(ConfigError, match="expected a file to write"):
        add_rule(tmp_path / "none" / "hosts", "synonym(a)=b")
