"""larmspider/extraction/pages/ways_on.py: hostile pages cost it no more than others."""

from __future__ import annotations

import time

import pytest

from larmspider.extraction.pages import ways_on
from larmspider.items import Page

FULL = ways_on.LOOKED_AT
UNITS = {
    "href and spaces": (b"<a href=", b" "),
    "links by scripts": (b"", b"<a href='' "),
    "onclick without an end": (b"<a onclick='", b"x location"),
    "divs without an end": (b"", b"<div "),
    "a div of ids": (b"<div ", b" id=x"),
    "noscript without an end": (b"<script>", b"<noscript>"),
    "noscript in noscript": (b"<script><noscript>", b"<"),
    "own elements": (b"<", b"a"),
    "names": (b"", b"name= "),
}


@pytest.mark.parametrize(("begin", "unit"), UNITS.values(), ids=UNITS)
def test_a_hostile_page_takes_linear_time(begin: bytes, unit: bytes) -> None:
    body = (begin + unit * (FULL // len(unit)))[: FULL - 11] + b"</noscript>"
    page = Page("http://h/login", mime="text/html", body=body, text="x" * 300)
    began = time.process_time()
    ways_on.instead_of_links(page)
    ways_on.is_shell(page, has_links=True)
    ways_on.is_shell(Page("http://h/", mime="text/html", body=body), has_links=True)
    ways_on.asks_sign_in(page)
    assert time.process_time() - began < 2


def test_the_text_of_noscript_is_no_text_of_a_shell() -> None:
    hint = "You need to enable JavaScript to run this app. " * 8
    body = f"<script src=a.js></script><NoScript>{hint}</NoScript><div id=root></div>".encode()
    page = Page("http://h/", mime="text/html", body=body, text=hint)
    assert ways_on.is_shell(page, has_links=False)
