"""Name, logo and colour of the search, by settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings
from selectolax.lexbor import LexborHTMLParser

from larmspider.errors import ConfigError
from larmspider.web.auth import Guard
from larmspider.web.look import MAX_LOGO_BYTES, Look
from tests.support.web.serving import TOKEN, Served

SVG = b'<?xml version="1.0"?>\n<!-- ours -->\n<svg xmlns="http://www.w3.org/2000/svg"/>'


def look_of(**named: str) -> Look:
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    for name, value in named.items():
        settings.set(f"LARM_SEARCH_{name}", value)
    return Look.from_settings(settings)


def test_pages_of_the_search_have_them(
    served: Callable[..., Served], demo_crawl: Path, tmp_path: Path
) -> None:
    """Errors too, and the description for browsers; nothing is in the page but links to files."""
    logo = tmp_path / "logo"
    logo.write_bytes(SVG)
    look = look_of(NAME="Find <us>", LOGO=str(logo), COLOUR="#FFD")
    closed = Guard(TOKEN, closed=True, open_paths=("/search", "/opensearch"))
    site = served(demo_crawl, guard=closed, look=look)
    for target in ("/search", "/search?q=siren", "/search?similar=x", "/search/x", "/hosts"):
        got = site.get(target)
        page = LexborHTMLParser(got.text)
        assert page.css_first("header .brand").text().strip() == "Find <us>", target
        assert page.css_first("title").text().endswith(" · Find <us>")
        picture = site.get(str(page.css_first("header img").attributes["src"]))
        assert (picture.headers["Content-Type"], picture.body) == ("image/svg+xml", SVG)
        sheet = page.css("link[rel=stylesheet]")[-1].attributes["href"]
        assert site.get(str(sheet)).text == ":root { --accent: #FFD; --accent-text: #000; }\n"
        assert page.css("style, [style]") == []
        assert page.css('a[href="/hosts"]') == []
    assert "<ShortName>Find &lt;us&gt;" in site.get("/opensearch.xml").text


def test_without_settings_there_is_neither_logo_nor_sheet(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    site = served(demo_crawl)
    page = LexborHTMLParser(site.get("/search").text)
    assert page.css_first("header .brand").text().strip() == "larmspider"
    assert page.css_first("header img").attributes["src"] == "/static/icon.svg"
    for name in ("search-logo", "search-look.css"):
        assert site.get(f"/static/{name}").status == 404


@pytest.mark.parametrize(
    "colour, ink", [("#000", "#fff"), ("#767676", "#000"), ("#1f6f8b", "#fff")]
)
def test_text_on_the_colour_can_be_read(colour: str, ink: str) -> None:
    assert f"--accent-text: {ink};" in look_of(COLOUR=colour).files["search-look.css"][1].decode()


@pytest.mark.parametrize(("name", "value", "says"), [
    ("NAME", " ", "LARM_SEARCH_NAME='': expected 1 to 60 printable characters"),
    ("NAME", "x" * 61, "expected 1 to 60"),
    ("NAME", "a\nb", "expected 1 to 60"),
    ("COLOUR", "red; } body { display: none", "expected a colour such as #7a1f3d"),
    ("COLOUR", "#12345", "expected a colour"),
    ("LANGUAGE", "nl", "LARM_SEARCH_LANGUAGE=nl: expected one of"),
    ("LOGO", "{}/none", "cannot be read: No such file"),
    ("LOGO", "{}", "cannot be read: Is a directory"),
    ("LOGO", "a\0b", "cannot be read: "),
    ("LOGO", "{}/large", "expected a file of at most 32,768 bytes"),
    ("LOGO", "{}/html", "expected an SVG, PNG, JPEG, WebP or GIF image"),
])  # fmt: skip
def test_a_bad_setting_says_what_is_expected(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    """In one line."""
    (tmp_path / "large").write_bytes(SVG.ljust(MAX_LOGO_BYTES + 1))
    (tmp_path / "html").write_bytes(b"<!doctype html><svg>")
    with pytest.raises(ConfigError) as raised:
        look_of(**{name: value.replace("{}", str(tmp_path))})
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
