"""larmspider/extraction/pages/requisites.py"""

from __future__ import annotations

import pytest

from larmspider.extraction.pages.requisites import requisites_of_page, requisites_of_style

PAGE = "http://wiki/docs/a.html"


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("<img src=a.png>", ["docs/a.png"]),
        ("<base href=/b/><base href=/c/><img src=a.png>", ["b/a.png"]),
        ("<img src=' a.png ' srcset='b.png 1x,c.png 2x, d,e.png'>", [
            "docs/a.png", "docs/b.png", "docs/c.png", "docs/d,e.png",
        ]),
        ("<img srcset='data:image/png;base64,aa,b 1x, /c.png 200w,'>", ["c.png"]),
        ("<picture><source srcset=a.webp><img src=a.png></picture>", ["docs/a.webp", "docs/a.png"]),
        ("<link rel='Alternate StyleSheet' href=s.css><link rel=icon href=/i.ico>", [
            "docs/s.css", "i.ico",
        ]),
        ("<link rel=next href=b.html><link rel=canonical href=/><a href=c.png>c</a>", []),
        ("<script src=a.js></script><script>x = 'b.js'</script>", ["docs/a.js"]),
        ("<input type=IMAGE src=go.png><input type=text src=no.png>", ["docs/go.png"]),
        ("<video poster=p.jpg src=film.mp4><source src=film.ogg></video>", ["docs/p.jpg"]),
        ("<svg><image href=a.svg /><image xlink:href=b.svg /></svg>", [
            "docs/a.svg", "docs/b.svg",
        ]),
        ("<body background=bg.gif><p style='background: url(&quot;x.png&quot;)'>", [
            "docs/bg.gif", "docs/x.png",
        ]),
        ("<style>@import 'm.css'; /* url(no.png) */ a { background: URL( y.png ) }</style>", [
            "docs/m.css", "docs/y.png",
        ]),
        ("<img src=a.png><img src=/docs/a.png><img src=javascript:x><img src=>", ["docs/a.png"]),
        ("<iframe src=f.html></iframe><embed src=e.swf><object data=o.pdf></object>", []),
    ],
)  # fmt: skip
def test_what_a_page_needs_to_be_shown(markup: str, found: list[str]) -> None:
    urls = requisites_of_page(markup.encode(), PAGE, "utf-8")
    assert urls == [f"http://wiki/{path}" for path in found]


def test_what_a_style_needs() -> None:
    """Relative to the style, not to its page."""
    style = b"""@import url("a.css") print; @import 'b.css';
        @font-face { src: url(font.woff2) format("woff2"), url('/f.ttf') }
        b { background: url(data:image/gif;base64,R0) } /* url(c.png) */ i { x: url() }"""
    assert requisites_of_style(style, "http://wiki/css/s.css", "text/css") == [
        "http://wiki/css/a.css", "http://wiki/css/b.css", "http://wiki/css/font.woff2",
        "http://wiki/f.ttf",
    ]  # fmt: skip


def test_no_more_than_a_thousand_of_a_page() -> None:
    markup = "".join(f"<img src={n}.png>" for n in range(1_500)).encode()
    assert len(requisites_of_page(markup, PAGE, "utf-8")) == 1_000


@pytest.mark.parametrize(
    "css", [b"url(" * 50_000, b"@import" + b" " * 200_000, b"/*" * 100_000, b'url("' * 40_000]
)
def test_hostile_styles_take_linear_time(css: bytes) -> None:
    assert len(requisites_of_style(css, PAGE, "text/css")) <= 1


@pytest.mark.parametrize(
    "markup", [b"<img srcset='" + b"," * 50_000 + b"'>", b"<style>" + b"(/*" * 50_000]
)
def test_hostile_markup_costs_no_more_than_its_length(markup: bytes) -> None:
    """With an expression that goes back 2,000 commas took 11 s, eight times as much for each
    doubling."""
    assert requisites_of_page(markup, PAGE, "utf-8") == []
