"""HTML becomes a Page: links, title, text, metadata."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.errors import InvalidURL
from larmspider.extraction.pages import deep_html, html, page_builder
from larmspider.extraction.pages.html import extract
from larmspider.extraction.pages.page_builder import (
    MAX_ANCHOR,
    MAX_DESCRIPTION,
    MAX_LINK_CHARS,
    MAX_SECTIONS,
    MAX_TEXT,
    MAX_TITLE,
)
from larmspider.extraction.processes.helper_child import packed
from larmspider.extraction.processes.process_child import answer_of
from larmspider.items import FRAME, ORDINARY, REDIRECT, Page
from larmspider.urls.canonical import LONGEST_URL, canonicalize
from larmspider.urls.resolve import MAX_HREF

SUITES = Path(__file__).parents[2] / ".." / "shared" / "suites"
URL = "http://wiki.example/docs/start?x=1#top"


def page(markup: str | bytes, url: str = URL) -> Page:
    return extract(markup.encode() if isinstance(markup, str) else markup, url, None)


def urls(markup: str | bytes, url: str = URL) -> list[str]:
    return [link.url for link in page(markup, url).links]


@pytest.mark.parametrize(
    ("markup", "url", "kind", "anchor"),
    [
        ("<a href=b>t</a>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<A HREF=b>t</A>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<a href='/b c#x'> two\n words </a>", "http://wiki.example/b%20c", ORDINARY, "two words"),
        ("<a href=b><i>a</i>b<p>c</p>d</a>", "http://wiki.example/docs/b", ORDINARY, "ab c d"),
        ("<a href=b><img alt=A> <img alt=B></a>", "http://wiki.example/docs/b", ORDINARY, "A B"),
        ("<a href=b>t<img alt=A></a>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<a href=b title=T></a>", "http://wiki.example/docs/b", ORDINARY, "T"),
        ("<a href=b title=T><i> </i></a>", "http://wiki.example/docs/b", ORDINARY, "T"),
        ("<a href=b><i><b>t</b></i></a>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<a href=b><i><p>t</p></i></a>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<a href=b><i><script>s</script></i></a>", "http://wiki.example/docs/b", ORDINARY, ""),
        ("<a href=b>t<script>s</script></a>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<a href=b>", "http://wiki.example/docs/b", ORDINARY, ""),
        ("<map><area href=b alt=Map></map>", "http://wiki.example/docs/b", ORDINARY, "Map"),
        ("<iframe src=b name=N></iframe>", "http://wiki.example/docs/b", FRAME, "N"),
        ("<iframe src=b name=N title=T></iframe>", "http://wiki.example/docs/b", FRAME, "T"),
        ("<frameset><frame src=b name=N></frameset>", "http://wiki.example/docs/b", FRAME, "N"),
        ("<link rel=next href=b title=T>", "http://wiki.example/docs/b", ORDINARY, "T"),
        ("<link rel='x PREV' href=b>", "http://wiki.example/docs/b", ORDINARY, ""),
        ("<link rel=alternate href=b>", "http://wiki.example/docs/b", ORDINARY, ""),
        (
            "<meta http-equiv=Refresh content='5; URL=b'>",
            "http://wiki.example/docs/b",
            REDIRECT,
            "",
        ),
        ("<svg><a xlink:href=b>t</a></svg>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<noscript><a href=b>t</a></noscript>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<object data=b title=T></object>", "http://wiki.example/docs/b", FRAME, "T"),
        ("<OBJECT TYPE=text/html DATA=' b '>x</OBJECT>", "http://wiki.example/docs/b", FRAME, ""),
        ("<a><object data=b name=N><p>t</object></a>", "http://wiki.example/docs/b", FRAME, "N"),
        ("<embed type=application/pdf src='b#page=2'>", "http://wiki.example/docs/b", FRAME, ""),
        ("<iframe srcdoc='<a href=b>t</a>'></iframe>", "http://wiki.example/docs/b", ORDINARY, "t"),
        ("<iframe srcdoc='&lt;embed src=b>'></iframe>", "http://wiki.example/docs/b", FRAME, ""),
        (
            "<iframe srcdoc='<base href=http://h/x/><a href=b>t</a>'></iframe>",
            "http://h/x/b",
            ORDINARY,
            "t",
        ),
        (
            "<iframe srcdoc='<iframe srcdoc=\"<a href=b>t</a>\">'></iframe>",
            "http://wiki.example/docs/b",
            ORDINARY,
            "t",
        ),
        (
            "<iframe srcdoc='<meta http-equiv=refresh content=\"0;b\">'></iframe>",
            "http://wiki.example/docs/b",
            ORDINARY,
            "",
        ),
        (
            "<x-y><template shadowrootmode=open><a href=b>t</a></template></x-y>",
            "http://wiki.example/docs/b",
            ORDINARY,
            "t",
        ),
        (
            "<div><TEMPLATE ShadowRoot='closed' class=a><a href=b>t</a></TEMPLATE></div>".replace(
                "ShadowRoot", "shadowRoot"
            ),
            "http://wiki.example/docs/b",
            ORDINARY,
            "t",
        ),
    ],
)
def test_link_is_found(markup, url, kind, anchor):
    """URL absolute without fragment, LARM's type, anchor on one line; normalized is left open."""
    (link,) = page(markup).links
    assert (link.url, link.type, link.anchor) == (url, kind, anchor)
    assert link.normalized is None


@pytest.mark.parametrize(
    "markup",
    [
        "<a name=b>t</a>",
        "<a href='javascript:go()'>t</a>",
        "<a href=' Java\nScript:go()'>t</a>",
        "<a href='data:text/html,x'>t</a>",
        "<a href=about:blank>t</a>",
        "<a href=vbscript:x>t</a>",
        "<iframe src=''></iframe>",
        "<iframe src=about:blank></iframe>",
        "<iframe name=x></iframe>",
        "<link rel=stylesheet href=b>",
        "<link rel='alternate stylesheet' href=b>",
        "<link rel=canonical href=b>",
        "<link rel=next>",
        "<meta http-equiv=refresh content=5>",
        "<template><a href=b>t</a></template>",
        "<template><div><template shadowrootmode=open><a href=b>t</a></template></div></template>",
        "<template shadowrootmode=none><a href=b>t</a></template>",
        "<object type=image/png data=b></object>",
        "<embed type=video/mp4 src=b>",
        "<embed src=''>",
        "<object data=''></object>",
        "<iframe srcdoc='<template><a href=b>t</a></template>'></iframe>",
        "<script>'<a href=b>'</script>",
        "<!-- <a href=b>t</a> -->",
        "<textarea><a href=b>t</a></textarea>",
        "<area alt=x>",
    ],
)
def test_no_link_is_found(markup):
    assert page(markup).links == []


@pytest.mark.parametrize("markup", ["<a href=''>", "<a href>", "<a href='#x'>", "<a href='  '>"])
def test_empty_href_and_fragment_are_links_to_the_page_itself(markup):
    assert urls(markup) == ["http://wiki.example/docs/start?x=1"]


@pytest.mark.parametrize(
    "markup, text",
    [
        ("a<object data=x>b</object>c", "a b c"),
        ("a<embed src=x>b", "a b"),
        ("a<iframe srcdoc='<title>t</title><h1>b</h1>c'>d</iframe>e", "a b c e"),
        (
            "a<iframe srcdoc='<script>b</script><option>c</option>d<main>e</main>'></iframe>",
            "a d e",
        ),
        ("<p>a long text<iframe hidden srcdoc='b'></iframe>c", "a long text c"),
        (
            "<x-y>a<template shadowrootmode=open>b<template>c</template>d</template>e</x-y>",
            "a bd e",
        ),
        ("<template>a<p shadowrootmode=open>b</template>c", "c"),
    ],
)
@pytest.mark.parametrize("nesting", ["", "<div>" * 1_000], ids=["lexbor", "libxml2"])
def test_what_a_page_shows_in_a_frame_is_its_text(markup: str, text: str, nesting: str) -> None:
    """The text of an object, of an iframe's srcdoc, and of a shadow root in the markup."""
    assert page(nesting + markup).text == text


def test_many_srcdocs_are_read_up_to_a_number_of_tags() -> None:
    one = "<iframe srcdoc='<a href=x>t</a>'></iframe>"
    assert len(page(one * 5_000).links) < 1_000


def test_every_link_is_kept_in_document_order():
    """Duplicates too, whatever the element, body before a late frame."""
    markup = (
        "<link rel=next href=1><meta http-equiv=refresh content='0;url=2'><a href=3></a>"
        "<iframe src=4></iframe><a href=3></a><area href=5>"
    )
    assert [url[-1] for url in urls(markup)] == ["1", "2", "3", "4", "3", "5"]


def test_other_schemes_are_kept():
    markup = "<a href=mailto:a@b.example><a href=ftp://h/f><a href=file:///etc/passwd>"
    assert urls(markup) == ["mailto:a@b.example", "ftp://h/f", "file:///etc/passwd"]


def test_href_that_does_not_resolve_is_kept_itself():
    """Trimmed, and cut at MAX_HREF characters."""
    assert urls("<a href=' http://h:99999/ '>") == ["http://h:99999/"]
    assert urls(f"<a href='http://[{'x' * 9000}'>") == [("http://[" + "x" * 9000)[:MAX_HREF]]


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("<base href=/other/>", "http://wiki.example/other/b"),
        ("<base target=_top><base href=/other/><base href=/third/>", "http://wiki.example/other/b"),
        ("<base href=http://else.example/>", "http://else.example/b"),
        ("<base href=http://[>", "http://wiki.example/docs/b"),
        ("<base href=javascript:x>", "http://wiki.example/docs/b"),
        ("<base href=data:x>", "http://wiki.example/docs/b"),
    ],
)
def test_base_is_respected(base, url):
    """The first base element with href counts, for links before it too; a bad one does not."""
    assert urls(f"<link rel=next href=b>{base}<a href=b>") == [url, url]


def test_page_url_that_is_none_leaves_absolute_links():
    assert urls("<a href=http://h/x><a href=y>", url="no url") == ["http://h/x", "y"]


def test_nofollow_of_one_link():
    links = page("<a rel='x NoFollow' href=1></a><a rel=me href=2></a><a href=3></a>").links
    assert [link.nofollow for link in links] == [True, False, False]


def test_links_that_a_script_sends_by_another_method_are_not_followed():
    """As Rails and Turbo write them."""
    links = page(
        "<a href=1 data-method=delete></a><a href=2 data-turbo-method=POST></a>"
        "<a href=3 data-method=get></a><a href=4 data-method></a><a href=5></a>"
    ).links
    assert [link.nofollow for link in links] == [True, True, False, False, False]


def test_links_that_ask_for_a_confirmation_are_not_followed():
    links = page(
        "<a href=1 data-confirm='Sure?'></a><a href=2 data-turbo-confirm=x></a>"
        "<a href=3 onclick=\"return confirm('Sure?')\"></a><a href=4 onclick='show(1)'></a>"
    ).links
    assert [link.nofollow for link in links] == [True, True, True, False]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a</p><p>b</p>", "a b"),
        ("<b>f</b>oo", "foo"),
        ("a<br>b", "a b"),
        ("a<div>b</div>c", "a b c"),
        ("<span><div>a</div></span>b", "a b"),
        ("<a href=x><div>a</div></a>b", "a b"),
        ("<div><p>a</p></div><i>b</i><b>c</b>", "a bc"),
        ("<table><tr><td>a<td>b<tr><td>c</table>d", "a b c d"),
        ("<ul><li>a<li>b</ul><select><option>c<option>d</select>", "a b"),
        (f"a<select>{'<option>some label' * 30}</select>b", "a b"),
        (f"a<datalist>{'<option>some label</option>' * 30}</datalist>b", "a b"),
        (f"<select><option>b<option>{'a' * 201}", "a" * 201),  # not closed
        ("a<button>press</button>b", "a b"),
        (f"<button>{'a' * 201}", "a" * 201),  # not closed
        ("a b <p hidden>c</p><span style='display:none'>d</span>e", "a b e"),
        ("a<div hidden>what a script shows</div>", "a what a script shows"),
        ("a<a href=x><span hidden>b</span>c</a>d", "a cd"),
        ("\ufdd0a\ufdd4b\ufdd4", "a b"),
        ("<dl><dt>a<dd>b</dl>c", "a b c"),
        ("foo<!-- x -->bar", "foobar"),
        ("a<wbr>b", "ab"),
        ("a<img>b<hr>c", "a b c"),
        (" a \n\t b\xa0c ", "a b c"),
        (" a\f \x1fb ", "a b"),
        ("a\x85\u2028b \u2029 c", "a b c"),
        ("a\u3000b", "a\u3000b"),
        ("a<script>x</script>b<style>y</style>c<template>z</template>d", "abcd"),
        ("<script></script>a", "a"),
        ("<svg><style>x<!-- y -->z</style></svg>a", "a"),
        ("<title>x</title>a<svg><title>y</title></svg>b", "ab"),
        ("<noscript>a</noscript>", "a"),
        ("<iframe src=x>y</iframe>a<noframes>z</noframes>", "a"),
        ("a&lt;b&amp;&eacute;", "a<b&é"),
        ("a\0b", "ab"),
    ],
)
def test_text_is_what_a_client_without_scripts_shows(markup, text):
    """Words part at blocks and not at inline elements."""
    assert page(markup).text == text


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title> a\n b &amp; c </title>", "a b & c"),
        ("<svg><title>s</title></svg><title>t</title>", "t"),
        ("<svg><g><title>s</title></g></svg>", ""),
        ("<svg><foreignObject><p><title>t</title>", "t"),
        ("<title>one</title><title>two</title>", "one"),
        ("<title></title><title>two</title>", ""),
        ("<title>never closed", "never closed"),
        ("", ""),
    ],
)
def test_title_is_the_first_of_the_document(markup, title):
    assert page(markup).title == title


@pytest.mark.parametrize(
    ("markup", "language"),
    [
        ("<html lang=de-AT>", "de-at"),
        ("<html xml:lang=de_AT>", "de-at"),
        ("<html lang=en><meta http-equiv=Content-Language content=de>", "en"),
        ("<html lang='{{ lang }}'><meta http-equiv=content-language content=de>", "de"),
        ("<meta http-equiv=content-language content='de, en'>", None),
        ("<html lang=deutsch>", None),
        ("<html lang=''>", None),
        ("<p lang=de>", None),
    ],
)
def test_language(markup, language):
    assert page(markup).language == language


@pytest.mark.parametrize(
    ("markup", "noindex", "nofollow"),
    [
        ("<meta name=robots content='noindex,nofollow'>", True, True),
        ("<meta name=ROBOTS content=NONE>", True, True),
        ("<meta name=larmspider content=noindex>", True, False),
        ("<meta name=robots content=noindex><meta name=larmspider content=nofollow>", True, True),
        ("<meta name=robots content=noindex><meta name=robots content=index>", True, False),
        ("<meta name=otherbot content=none>", False, False),
        ("<meta name=robots content='all, noindexing'>", False, False),
        ("<meta name=robots>", False, False),
    ],
)
def test_robots_directives_combine(markup, noindex, nofollow):
    found = page(markup)
    assert (found.noindex, found.nofollow) == (noindex, nofollow)


def test_canonical_and_description():
    """The canonical URL is absolute; the first description that is not empty counts."""
    found = page(
        "<link rel=Canonical href=/c#x><link rel=canonical href=/d><meta name=description content>"
        "<meta name=Description content=' a\nb '><meta name=description content=c>"
    )
    assert found.canonical == "http://wiki.example/c"
    assert found.description == "a b"
    assert page("<link rel=canonical href=http://[>").canonical is None


@pytest.mark.parametrize(
    ("content", "url"),
    [
        ("0;url=b", "http://wiki.example/docs/b"),
        ("0 ; URL = 'b'x", "http://wiki.example/docs/b"),
        ('0,"b', "http://wiki.example/docs/b"),
        ("1.5 b", "http://wiki.example/docs/b"),
        (".5; url=b", "http://wiki.example/docs/b"),
    ],
)
def test_refresh_syntax_of_browsers(content, url):
    markup = f"<meta http-equiv=refresh content='{content}'>".replace("'b'x", "&#39;b&#39;x")
    assert urls(markup) == [url]


@pytest.mark.parametrize("content", ["", "url=b", "x;url=b", "5", "5;", "5; url=", "-1;url=b"])
def test_refresh_without_target(content):
    assert urls(f"<meta http-equiv=refresh content='{content}'>") == []


def test_the_first_refresh_with_a_target_counts():
    """As in browsers; a page with several is no page of redirects."""
    refresh = "<meta http-equiv=refresh content='{}'>".format
    markup = refresh("5") + "".join(refresh(f"0;url={n}") for n in range(3))
    assert urls(markup) == ["http://wiki.example/docs/0"]


@pytest.mark.parametrize(
    ("markup", "moved"),
    [
        ("<meta http-equiv=refresh content='0;url=b'>", True),
        ("<meta http-equiv=refresh content='1.9;url=b'>", True),
        ("<meta http-equiv=refresh content='.5;url=b'>", True),
        ("<meta http-equiv=refresh content='2;url=b'>", False),
        (f"<meta http-equiv=refresh content='{'9' * 5000};url=b'>", False),
        ("<meta http-equiv=refresh content='0'>", False),
        ("<noscript><meta http-equiv=refresh content='0;url=b'></noscript>", False),
    ],
)
@pytest.mark.parametrize("read", [html.read, deep_html.read])
def test_a_page_that_sends_its_readers_on_at_once_has_moved(markup, moved, read):
    """Within a second, for any reader; by either parser."""
    found = read(markup.encode())
    assert found.moved is moved
    assert len(found.links) == ("url=b" in markup)
    assert page(markup).moved is moved


def test_a_refresh_in_noscript_hides_no_other():
    """One for readers without scripts, one for all."""
    refresh = "<meta http-equiv=refresh content='0;url={}'>".format
    markup = f"<noscript>{refresh(1)}{refresh(2)}</noscript>{refresh(3)}{refresh(4)}"
    assert [url[-1] for url in urls(markup)] == ["1", "3"]
    assert page(markup).moved


def test_everything_has_a_limit(monkeypatch):
    monkeypatch.setattr(page_builder, "MAX_LINKS", 10)
    monkeypatch.setattr(html, "MAX_LINKS", 10)
    long = "x" * 5_000_000
    found = page(
        f"<title>{long}</title><meta name=description content='{long}'><a href=y>{long}"
        + "<a href=z>" * 20
    )  # fmt: skip
    assert len(found.title) == MAX_TITLE
    assert len(found.description) == MAX_DESCRIPTION
    assert len(found.links[0].anchor) == MAX_ANCHOR
    assert len(found.text) == MAX_TEXT
    assert len(found.links) == 10


def test_anchor_texts_have_a_limit_together(monkeypatch):
    """Links nest in an svg, so that each text holds the texts of all links within: 16 MB took 42 s.
    Beyond the limit links are found without a text, unless that is one piece."""
    monkeypatch.setattr(html, "_ALL_ANCHOR_NODES", 100)
    drawing = "<svg>" + "<a href=x>t" * 20 + "</a>" * 20 + "</svg>"
    links = page(drawing * 10 + "<a href=y>one piece</a>").links
    assert len(links) == 201
    assert links[0].anchor == "t" * 20
    assert {link.anchor for link in links[40:200]} == {"", "t"}
    assert links[200].anchor == "one piece"


def test_charset_reaches_title_href_and_text():
    body = "<meta charset=koi8-r><title>Мир</title><a href=Мир>Мир</a>".encode("koi8-r")
    found = extract(body, URL, None)
    assert (found.charset, found.title, found.text) == ("koi8-r", "Мир", "Мир")
    assert found.links[0].url.endswith("/%D0%9C%D0%B8%D1%80")
    assert extract(body, URL, "text/html; charset=koi8-u").charset == "koi8-u"


def test_bad_utf8_becomes_replacement_characters():
    """Most characters of the page are UTF-8."""
    markup = b"<title>a\xffb</title><a href='\xff'>c\xffd</a> " + "äöüß".encode()
    found = extract(markup, URL, "text/html; charset=utf-8")
    assert (found.title, found.text) == ("a\ufffdb", "c\ufffdd äöüß")
    assert found.links[0].anchor == "c\ufffdd"


def test_fields_of_the_fetch_are_left_to_the_spider():
    body = b"<title>x</title>"
    found = extract(body, URL, None)
    assert (found.url, found.body) == (URL, body)
    assert (found.normalized, found.mime, found.fetched) == (None, "", 0.0)


@pytest.mark.parametrize(
    "body",
    [b"", b"\0", b"\0" * 1000, b"<", b"</", b"<a href='", b"<a href=x", b"<!--", b"<![CDATA[",
     b"<meta", b"<title", b"\xff\xfe", b"\xef\xbb\xbf", b"<html><html><body><body lang=x>",
     bytes(range(256)) * 20, b"%PDF-1.4\n\xe2\xe3"],
)  # fmt: skip
def test_garbage_is_a_page(body):
    assert extract(body, URL, None).url == URL


@given(st.binary(max_size=500), st.text(max_size=30), st.none() | st.text(max_size=30))
def test_any_bytes_are_a_page(body, url, content_type):
    """Never raises, and no field breaks the line."""
    found = extract(body, url, content_type)
    assert len(found.title.splitlines()) <= 1


TOKENS = ["<a href=", "<a href='x'>", "</a>", "<div>", "</div>", "<table>", "<td>", "<svg>", "<p>",
          "</p>", "<title>", "</title>", "<script>", "</script>", "<template>", "</template>",
          "<iframe src=y>", "<frameset>", "<frame src=z>", "<base href=/b/>", "<b>", "</b>", "x ",
          "<!--", "-->", "<math>", "<noscript>", "<select>", "<option>",
          "\0", "\U0010ffff", "&#0;"]  # fmt: skip


@given(st.lists(st.sampled_from(TOKENS), max_size=60))
def test_any_markup_is_a_page(tokens):
    found = page("".join(tokens))
    assert all(link.url and link.anchor == " ".join(link.anchor.split()) for link in found.links)


def test_urls_are_kept_up_to_a_length_in_all():
    """A long base makes long URLs of short hrefs."""
    base = f"<base href=/{'b' * 60_000}/>"
    links = page(base + "".join(f"<a href={n}>" for n in range(10_000))).links
    assert sum(len(link.url) for link in links) <= MAX_LINK_CHARS
    assert len(links) > 150


def test_an_href_that_is_too_long_stays_too_long_and_is_cut():
    """It is none that is shorter: no canonical form is made of it, so it is not fetched."""
    (long,) = page(f"<a href='  http://user:secret@h/{'ü' * 1_000_000}'>").links
    assert "secret" not in long.url
    assert len(long.url) == LONGEST_URL + 1
    with pytest.raises(InvalidURL, match="longer than"):
        canonicalize(long.url)
    (short,) = page(f"<a href='{' ' * 100_000}http://h/a'>").links
    assert short.url == "http://h/a"


def naughty_strings() -> list[str]:
    file = SUITES / "naughty-strings" / "blns.json"
    data = json.loads(file.read_text()) if file.exists() else []
    return list(data["strings"] if isinstance(data, dict) else data)


@pytest.mark.skipif(
    not naughty_strings(), reason=f"peer test data is not here: {SUITES / 'naughty-strings'}"
)
def test_naughty_strings_as_title_anchor_and_href():
    """No string breaks a field's line, and the link behind it is found."""
    for naughty in naughty_strings():
        markup = f'<title>{naughty}</title><a href="{naughty}">{naughty}</a>'
        found = page(markup.encode("utf-8", "replace"))
        for field in (found.title, found.text, *(link.anchor for link in found.links)):
            assert len(field.splitlines()) <= 1, naughty
        quoted = naughty.replace("&", "&amp;").replace('"', "&quot;")
        (link,) = page(f'<a href="http://h/{quoted}">x</a>'.encode("utf-8", "replace")).links
        assert link.url.startswith("http://h/"), naughty


def heritrix_cases() -> list[dict]:
    """Its cases whose markup has an a, area, frame or iframe element with an address."""
    file = SUITES / "heritrix-extractor" / "html_links.json"
    cases = json.loads(file.read_text())["cases"] if file.exists() else []
    tags = ("<a ", "<area ", "<frame ", "<iframe ")
    return [case for case in cases if any(tag in case["html"].lower() for tag in tags)]


HERITRIX_DIFFERS = {
    "testNoWhitespaceBeforeValidAttribute": "a frame outside of a frameset is no element in HTML",
    "testMetaRobots": "the links of a nofollow page are kept; Page.nofollow says so",
    "testRelNofollow": "nofollow links are kept and marked",
}


@pytest.mark.skipif(not heritrix_cases(), reason="peer data heritrix-extractor is not there")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{n}-{case['test']}") for n, case in enumerate(heritrix_cases())],
)
def test_links_of_heritrix_are_found(case):
    """All expected links; embeds (img, script, source, link) are out of scope by their element."""
    links = page(case["html"], case["base"]).links
    found = {link.url.rstrip("/") for link in links}
    missing = {url for url in case["expect_contains"] if url.rstrip("/") not in found}
    if case["test"] == "testNoWhitespaceBeforeValidAttribute":
        assert found == set()
        framed = page(f"<frameset>{case['html']}</frameset>", case["base"])
        assert [link.url for link in framed.links] == case["expect_contains"]
    elif case["test"] in HERITRIX_DIFFERS:
        assert not missing
        assert page(case["html"], case["base"]).nofollow or any(link.nofollow for link in links)
    else:
        assert not missing
        if case.get("expect_count") is not None:
            assert len(links) == case["expect_count"]


@pytest.mark.acceptance
def test_a_large_page_is_quick():
    """100,000 links, 10 MB of text and 50,000 options take 1 s together (options alone 20 s, were
    lexbor's mutation events on)."""
    start = time.process_time()
    assert len(page("<a href=x>y</a>" * 100_000).links) == 100_000
    assert len(page("x y " * 2_500_000).text) >= MAX_TEXT - 1
    assert page("<select>" + "<option>x</option>" * 50_000 + "</select>y").text == "y"
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a</p>b", "a b"),
        ("<p>a</p>\n b", "a b"),
        ("<div><p>a</p></div>b", "a b"),
        ("<span><p>a</p></span>b", "a b"),
        ("<div><span><p>a</p></span></div>b", "a b"),
        ("<p>a</p><p>b</p>c", "a b c"),
        ("<div><p>a</p><br></div>b", "a b"),
        ("<p>a</p><script>x</script>b", "a b"),
        ("<p>a</p><!-- x -->b", "a b"),
        ("<p>a</p><b>b</b>c", "a bc"),
        ("<p>a</p><img>b", "a b"),
        ("<a href=x><div>a</div></a>b", "a b"),
    ],
)
def test_a_block_parts_its_text_from_what_follows(markup: str, text: str) -> None:
    """Whether white space, a block, an element that parts nothing or the end of another follows."""
    assert extract(markup.encode(), "http://h/", "text/html").text == text


@pytest.mark.parametrize(
    ("charset", "href", "expected"),
    [
        ("latin1", "?q=é", "?q=%E9"),
        ("latin1", "é/ö?q=é&x=%C3%A9#ü", "%C3%A9/%C3%B6?q=%E9&x=%C3%A9"),
        ("latin1", " ?a\tb='é <x>' \n", "?ab=%27%E9%20%3Cx%3E%27"),
        ("latin1", "?q=\N{SNOWMAN}&amp;r=é", "?q=%26%239731%3B&r=%E9"),
        ("latin1", "//other.example/é?é?é", "http://other.example/%C3%A9?%E9?%E9"),
        ("latin1", "http://other.example?é", "http://other.example/?%E9"),
        ("latin1", "mailto:a@b?é", "mailto:a@b?%C3%A9"),
        ("latin1", "é", "%C3%A9"),
        ("koi8-r", "?п", "?%D0"),
        ("shift_jis", "?①", "?%87@"),
        ("iso-2022-jp", "?あ\N{SNOWMAN}", "?%1B$B$%22%1B(B%26%239731%3B"),
        ("utf-8", "?é", "?%C3%A9"),
        ("utf-16", "?é", "?%C3%A9"),
    ],
)
def test_the_query_of_a_link_is_in_the_pages_charset(
    charset: str, href: str, expected: str
) -> None:
    """As browsers send it: path and host are UTF-8 everywhere, a character that the charset lacks
    becomes its number, escapes stay."""
    python = "utf-16le" if charset == "utf-16" else charset
    markup = f'<a href="{href}">t</a><link rel=canonical href="{href}">'
    body = markup.encode(python, "xmlcharrefreplace")
    found = extract(body, "http://h/x/", f"text/html; charset={charset}")
    expected = expected if ":" in expected else f"http://h/x/{expected}"
    assert ([link.url for link in found.links], found.canonical) == ([expected], expected)


def test_a_base_elements_query_is_in_the_pages_charset() -> None:
    assert urls("<meta charset=latin1><base href='/b?é'><a href=''>t</a>".encode("latin1")) == [
        "http://wiki.example/b?%E9"
    ]


SHORT = "os.path.join puts paths together"
LONG = "One sentence of the text. " * 10


CHAPTER = "<h1>1. Guns</h1>{}" + f"<p>{LONG}</p>"
DOCBOOK = '<div class="toc"><p>Table of Contents</p><dl class="toc"><dt>1.1. Loading</dl></div>'
LIST = f'<div class="toc">{"".join(f"<li>1.{n}. Section" for n in range(30))}</div>'


TEXINFO = """<div class="header">
<p>
Next: <a href="b.html" accesskey="n" rel="next">b</a>, Up: <a href="#Top">Top</a>"""

MENU = "<li><a href=a>a</a>" * 5_000


@pytest.mark.parametrize(
    ("markup", "main"),
    [
        (f"<nav>menu</nav><p>{LONG}<footer>imprint</footer>", LONG),
        (f"before<main><h1>T</h1>{LONG}<aside>more</aside></main>after", f"T {LONG}"),
        (f"<main>{LONG}<article>short</article></main>after", f"{LONG}short"),
        (f"<main>crumbs<article>{LONG}</article></main>after", LONG),
        (f"a<article>{LONG}</article>b<article>{LONG}</article>c", LONG + LONG),
        (f"<form>{LONG}</form>", LONG),  # a whole page in a form
        (f"<nav>menu</nav>a<main></main>{LONG}", f"a {LONG}"),
        (f"<nav>menu</nav></nav>{LONG}</main>", LONG),
        (f'<div role="navigation">menu<p>more</div>{LONG}<ul role=contentinfo>by</ul>', LONG),
        (f"<div role='banner'>a</div><div role=note>b</div>{LONG}", f"b {LONG}"),
        (f"crumbs<div role=main><div role=search>find</div>{LONG}</div>after", LONG),
        (f"<main role=main>{LONG}</main><nav role=navigation>menu</nav>after", LONG),
        (f"<nav role=navigation>menu</nav><div role=banner>head</div>{LONG}", LONG),
        (
            f"<nav role=search>{MENU}</nav><p role=banner>a</p>{LONG}<div role=main>{LONG}</div>",
            LONG,
        ),
        (f'<div class="navheader x">Prev Up</div>{LONG}<div class="navfooter">Up</div>', LONG),
        (f'<table class="navigation" id=top><td>Prev</table>{LONG}', LONG),
        (f'<p class="navy breadcrumbless">a</p>{LONG}', f"a {LONG}"),
        (f'{TEXINFO}</p></div>{LONG}<div class="header"><p>Up: x</div>', LONG),
        (f'<div class="header"><p>Next: <a href=b>b</a></p></div>{LONG}', f"Next: b {LONG}"),
        (f'{TEXINFO}</p></div>{LONG}<p class="header wide">b</p>', f"{LONG} b"),
        (f'{TEXINFO}</p></div><div class="contents">1. a</div>{LONG}', LONG),
        (f'<div class="contents">1. a</div>{LONG}', f"1. a {LONG}"),
        (f"<form><nav>menu</nav><main>{LONG}</main>by</form>", LONG),  # as of ASP.NET
        (f"<form><nav>menu</nav><div>{LONG}</div></form>by", f"{LONG} by"),
        (f"<form>find <input></form>{LONG}", LONG),
        (f"<nav>{LONG}</nav><main><article>{SHORT}</article></main>by", f"{SHORT} by"),
        (f"<nav>{LONG}</nav><div role=main>{SHORT}</div>", SHORT),
        (f"<nav>menu</nav><main>{SHORT}</main>{LONG}", f"{SHORT} {LONG}"),
        (CHAPTER.format(DOCBOOK), f"1. Guns {LONG}"),
        (CHAPTER.format('<div id="toc" class="toc2">1.1. Loading</div>'), f"1. Guns {LONG}"),
        (f'<main>{LONG}<div class="toc">1. Guns</div></main>after', LONG),
        (f"<nav>Up</nav>{LIST}{LONG * 20}", LONG * 20),
        (f'<p class="tock toccata">1. Guns {LONG}', f"1. Guns {LONG}"),
    ],
)
def test_the_main_text_is_without_what_surrounds_it(markup, main):
    """The text has all of it."""
    found = page(markup)
    assert found.main.split() == main.split()
    rest = {word for start, end in found.rest for word in found.text[start:end].split()}
    assert set(found.text.split()) == rest | set(main.split())


@pytest.mark.parametrize(
    ("markup", "core"),
    [
        ("<nav>Home Wiki</nav><h1 id=t>T</h1><p>short<footer>imprint</footer>", "T short"),
        (f"<nav>Home</nav><div>{LONG}</div><main>short</main>", ""),
        ("<nav>Home</nav>crumbs<main><h1>T</h1>short</main>more", "T short"),
        (f"<nav>Home</nav>{LONG}", ""),
        (f"<form>{LONG}</form>", ""),
        ("<main>short</main>", ""),
        ("<nav>Home</nav>short<main> <p></p></main>", "short"),
        (f"<nav>Home</nav><article>{SHORT}</article>", SHORT),
        ("<nav>Home</nav>", ""),
        ("<nav>Home</nav><p hidden>unseen</p>a <button>Go</button>b", "a b"),
        ("short", ""),
        (f"<nav>Up</nav><h1>Guns</h1>{DOCBOOK}", "Guns"),
        (DOCBOOK, ""),
    ],
)
def test_the_core_is_what_is_too_short_for_a_main_text(markup, core):
    """All of the text is main text then, and nothing of it is lost."""
    found = page(markup)
    assert found.core.split() == core.split()
    assert not core or found.main == found.text


def contents_of(found: Page) -> list[str]:
    spans = [found.rest[at] for at in found.contents]
    return " ".join(found.text[start:end] for start, end in spans).split()


@pytest.mark.parametrize("before", ["", f"<p>{LONG}", f"<p>{LONG * 50}"])
def test_a_table_of_contents_is_no_main_text_and_known_as_one(before):
    heading = "Guns, and how they are loaded at sea"
    found = page(f"<nav>Up</nav><h1>{heading}</h1>{before}{LIST}<footer>imprint</footer>")
    assert found.main.split() == f"{heading} {before.removeprefix('<p>')}".split()
    listed = contents_of(found)
    assert listed[:2] == ["1.0.", "Section"]
    assert not {"Up", "imprint", "Guns,"} & set(listed)
    assert found.core == ""
    other = Page("http://h/")
    markup = f"<nav>Up</nav><h1>{heading}</h1>{before}{LIST}<footer>imprint</footer>"
    deep_html.read(markup.encode()).fill(other)
    assert (other.contents, other.rest) == (found.contents, found.rest)


@pytest.mark.parametrize("size", range(24, 36))
def test_both_extractors_count_the_same_characters_beside_a_table_of_contents(size: int) -> None:
    markup = f"<h1 id=a>{'x' * 9}</h1><h2 id=b>{'y' * (size - 10)}</h2>{LIST}"
    found, other = page(markup), Page("http://h/")
    deep_html.read(markup.encode()).fill(other)
    assert bool(found.contents) == (size >= 30)
    assert (other.contents, other.core) == (found.contents, found.core)


@pytest.mark.parametrize("markup", [
    "<h2 id=top></h2><main><h1>Title</h1><p>{}</main>",
    "<a id=b0></a><dl><dt id=d1></dt></dl><main><p>{}</main>",
    "<dl><dt id=q></dt></dl><nav>menu</nav><p>{}",
    '<h2 id=top></h2><div class="toc">1. One</div><p>{}',
])  # fmt: skip
def test_a_region_right_behind_an_empty_heading_begins_where_it_does(markup: str) -> None:
    found = page(markup.format(LONG))
    assert LONG.strip() in found.main
    assert "menu" not in found.main
    assert found.rest == sorted(found.rest)
    assert all(0 <= start <= end for start, end in found.rest)


@pytest.mark.parametrize("between", [
    "<nav><h2 id=n></h2></nav>",
    "<nav>menu</nav>",
    "<nav>menu</nav><aside>more</aside>",
    '<div class="toc">1. One</div>',
    '<nav>menu</nav><div class="toc">1. One</div>',
    "<header><dl><dt id=n></dt></dl></header>",
])  # fmt: skip
@pytest.mark.parametrize("around", ["<p>alpha</p>{}<p>{}", "<div>alpha{}{}</div>"])
def test_what_stands_on_both_sides_of_a_region_stays_apart(around: str, between: str) -> None:
    markup = around.format(between, f"beta {LONG}")
    found, other = page(markup), Page("http://h/")
    deep_html.read(markup.encode()).fill(other)
    assert found.main.split()[:2] == other.main.split()[:2] == ["alpha", "beta"]
    assert "alpha  beta" not in found.main


def test_a_table_of_contents_beside_next_to_nothing_is_main_text_but_not_core():
    """Without the navigation around it."""
    found = page(f"<nav>Up</nav><h1>Guns</h1>{LIST}")
    assert (found.core, found.contents) == ("Guns", [])
    assert found.main.split()[:3] == ["Guns", "1.0.", "Section"]
    assert "Up" in found.text.split()


@pytest.mark.parametrize(
    "tag", ["nav", "main", "button", "div hidden", "p role=main", "div role=search"]
)
def test_regions_in_each_other_take_linear_time(tag):
    found = page(f"<{tag}>a" * 5_000)
    assert len(found.text.split()) in (0, 5_000)


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title>T</title><h1>H</h1>", "T"),
        ("<title> </title><meta property=og:title content=O><h1>H <b>1</b></h1><h1>I</h1>", "H 1"),
        ("<meta property=og:title content=O><h1></h1>", "O"),
        ("no title", ""),
    ],
)
def test_the_title_is_the_first_heading_where_there_is_none(markup, title):
    assert page(markup).title == title
    other = Page("http://h/")
    deep_html.read(markup.encode()).fill(other)
    assert other.title == title


@pytest.mark.parametrize(
    ("heading", "plain"),
    [
        ("<h1 id=a>About<a class=headerlink href=#a>\uf0c1</a></h1>", "About"),
        ("<h1 id=a>About <b>C#</b><a href=#a>\xb6</a></h1>", "About C#"),
        ("<h1 id=a>About <a href=page#a title=x><i>#</i></a></h1>", "About"),
        ("<h1 id=a><a href=#a>\xa7</a>About</h1>", "About"),
        ("<dt id=a>:<span> <code>x</code><a href=#a> \xb6</a></span></dt>", ": x"),
        ("<h1 id=a>About C#</h1>", "About C#"),
        ("<h1 id=a><a name=b></a>\xa7 1 <b>About</b></h1>", "\xa7 1 About"),
        ("<h1 id=a># <b>About</b> \xb6</h1>", None),
    ],
)
def test_the_sign_by_which_a_heading_links_to_itself_is_no_text(heading, plain):
    markup = f"{heading}<p>text <a href=http://h/x>#</a>"
    found, other = page(markup), Page("http://h/")
    deep_html.read(markup.encode()).fill(other)
    if plain is None:  # no link
        assert found.text == other.text == "# About \xb6 text #"
    else:
        assert found.text == other.text == f"{plain} text #"
        assert [section.heading for section in found.sections] == [plain]
        assert found.title in (plain, "")


@pytest.mark.parametrize(
    ("markup", "anchors"),
    [
        ('<h2 class="title">\n<a name="a"></a>1.\xa0A</h2>', ["a"]),  # as DocBook writes it
        ("<h2> <span id=a>A</span></h2>", ["a"]),
        ("<h2>\n</h2><h2>A <a name=a></a></h2>", []),
    ],
)
def test_white_space_before_the_name_of_a_heading_is_skipped(markup, anchors):
    assert [section.anchor for section in page(markup).sections if section.anchor] == anchors


def test_headings_that_nothing_leads_to_are_noted_without_an_anchor():
    """Not terms of lists, of which there are too many, nor what is blank."""
    found = page("<h1>A <b>a</b></h1>x<h2 id=b>B</h2><h3> <img></h3><dl><dt>C<dt id=d>D</dl><h6>E")
    assert [(one.anchor, one.heading) for one in found.sections] == [
        ("", "A a"), ("b", "B"), ("d", "D"), ("", "E")
    ]  # fmt: skip
    assert all(found.text.startswith(one.heading, one.start) for one in found.sections)
    assert found.text == "A a x B C D E"


def test_headings_that_nothing_leads_to_take_no_place_from_others():
    sections = page("<h2>A</h2>" * MAX_SECTIONS + "<h2 id=b>B</h2><h2>C</h2>").sections
    assert len(sections) == MAX_SECTIONS + 1
    assert sections[-1][1:] == ("b", "B")
    assert len(page("<h2 id=b>B</h2>" * MAX_SECTIONS + "<h2>C</h2><h2 id=d>D").sections) == (
        MAX_SECTIONS
    )


def test_icons_are_not_in_titles_and_headings():
    found = page("<title>\ue800 T</title><h1 id=a>\uf015 H</h1>")
    assert (found.title, [section.heading for section in found.sections]) == ("T", ["H"])


def test_the_description_is_open_graph_s_where_there_is_none():
    assert page("<meta property=og:description content='a  b'>").description == "a b"
    both = "<meta property=og:description content=a><meta name=description content=b>"
    assert page(both).description == "b"


@pytest.mark.parametrize(
    "markup", [b"", b"<a href=/x rel=nofollow>x</a><a href=javascript:y>y</a><iframe src=/f>"]
)
def test_links_as_columns_are_those_of_the_page(markup):
    page, columns = html.extract_columns(markup, "http://h/", "text/html")
    whole = html.extract(markup, "http://h/", "text/html")
    assert packed(answer_of(page, columns)) == packed(answer_of(whole))
    assert not page.links


def test_texts_of_a_drawing_are_apart() -> None:
    page = html.extract(
        b"<p>a<svg><text>one</text><g><text>two<tspan>three</tspan></text></g></svg>b",
        "http://h/",
        None,
    )
    assert page.text == "a one twothree b"
