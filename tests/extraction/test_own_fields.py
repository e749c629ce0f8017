"""extraction/pages/own_fields.py: what selectors find on pages, and which are refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.extraction.pages import own_fields
from larmspider.extraction.pages.own_fields import MAX_NAMES, MAX_VALUE, MAX_VALUES, OwnFields
from larmspider.extraction.processes.process import Readers
from larmspider.search import query

PAGE = """
<meta name=status content=" Open "><h1>Chair</h1>
<p class=price>12 <b>€</b></p><p class=price>12 €</p><p class=price> </p>
<div id=room><p>Building A</p><p>4.<i>12</i></p><br>left</div>
<ul><li>a</li><li>b</li></ul><p class=long>xxx</p>
""".replace("xxx", "x " * 5_000)


@pytest.mark.parametrize(
    ("selector", "values"),
    [
        (".price", ["12 €"]),  # each once, none that is empty
        ("h1::text", ["Chair"]),
        ("meta[name=status]::attr(content)", ["Open"]),
        ("//meta[@name='status']/@content", ["Open"]),
        ("#room", ["Building A 4.12 left"]),
        ("li, h1", ["Chair", "a", "b"]),
        ("count(//li)", ["2"]),
        ("normalize-space(//h1)", ["Chair"]),
        (".long", [("x " * MAX_VALUE)[: MAX_VALUE - 1]]),
        ("h2", None),
        ("//comment()", None),
    ],
)
def test_css_selectors_and_xpaths(selector: str, values: list[str] | None) -> None:
    """An element is its text, parted where a browser parts it."""
    own = OwnFields.parse({"*": {"x": selector}})
    found = own.of_page(PAGE.encode(), "http://h/", "text/html; charset=utf-8")
    assert found == ({} if values is None else {"x": values})


def test_values_are_limited() -> None:
    body = "".join(f"<li>{n}" for n in range(1_000)).encode()
    found = OwnFields.parse({"*": {"x": "li"}}).of_page(body, "http://h/", "")
    assert found == {"x": [str(n) for n in range(MAX_VALUES)]}


def test_the_first_pattern_that_sets_a_name_holds() -> None:
    """Hosts with and without a port, in any case; pages of HTML alone."""
    own = OwnFields.parse(
        {"shop*": {"a": "//a"}, "*.example:8080": {"a": "//b", "b": "//b"}, "*": {"c": "//c"}}
    )
    assert own.of_url("http://SHOP.example:8080/x") == {"a": "//a", "b": "//b", "c": "//c"}
    assert own.of_url("http://shop.example/x") == {"a": "//a", "c": "//c"}
    assert own.of_url("http://[::1/") == {}
    assert own.are_on("text/html", "http://wiki/")
    assert not own.are_on("application/pdf", "http://wiki/")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a b": {"x": "b"}}, "host 'a b': expected host or host:port"),
        ({"h": {}}, "host 'h': {}: expected fields"),
        ({"h": "b"}, "host 'h': 'b': expected fields"),
        ({"h": {"Price": "b"}}, "host 'h': field 'Price': expected a name of"),
        ({"h": {"title": "b"}}, "field 'title': expected a name of .* and none of author, host"),
        ({"h": {"x": "b["}}, r"host 'h': x: 'b\[': expected a CSS selector or an XPath: "),
        ({"h": {"x": "//b["}}, r"x: '//b\[': expected a CSS selector or an XPath: .*Invalid"),
        ({"h": {"x": "b:foo"}}, "expected a CSS selector or an XPath: .* :foo is unknown"),
        ({"h": {"x": "foo(//b)"}}, "expected a CSS selector or an XPath: .*Unregistered function"),
        ({"h": {"x": ""}}, "x: '': expected a CSS selector or an XPath"),
        ({"h": {"x": 3}}, "x: 3: expected a CSS selector or an XPath"),
        ({"h": {f"x{n}": "b" for n in range(MAX_NAMES + 1)}}, "33 names .*: expected at most 32"),
        (
            {"h": {"x": f"//b[.='{'b' * 60_000}']"}},
            "60,01[0-9] characters of XPaths: expected at most 32",
        ),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^LARM_FIELDS: .*{message}") as refused:
        OwnFields.parse(given)
    assert "\n" not in str(refused.value)


def test_facets_are_fields() -> None:
    given = {"LARM_FIELDS": '{"h": {"room": "b"}}', "LARM_FACETS": "room,rom"}
    with pytest.raises(
        ConfigError, match=r"LARM_FACETS=rom: expected fields of LARM_FIELDS \(room"
    ):
        OwnFields.from_settings(Settings(given))


def test_names_of_queries_are_no_fields() -> None:
    assert frozenset(query.FIELDS) == own_fields._RESERVED


def test_a_selector_that_takes_for_ever_costs_a_page_its_fields_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are looked for in the process that reads large pages; other hosts' pages are not."""
    slow = "//i" + "[count(//i[count(//i) > 1]) > 1]" * 3
    own = OwnFields.parse({"slow": {"x": slow}, "quick": {"x": "title"}})
    body = b"<title>T</title>" + b"<i>x</i>" * 2_000

    with Readers(page_secs=0.3, fields=own) as readers:
        assert not readers.is_apart("text/html", body, "http://other/")
        assert readers.is_apart("text/html", body, "http://slow/")
        page = asyncio.run(readers.read("text/html", body, "http://slow/", "text/html"))
        assert (page.title, page.fields, page.unread) == ("T", {}, "")
        readers.pages.seconds = 30
        assert readers.read_again("text/html", body, "http://quick/").fields == {"x": ["T"]}
    (said,) = caplog.messages
    assert said.startswith("Stored without its own fields (LARM_FIELDS): http://slow/ (too-long: ")
