"""Where a URL ends in Markdown, CSV, JSON and plain text."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from larmspider.extraction.documents import delimited, markdown, text
from larmspider.extraction.documents.reading import urls_in

HERE = "http://h/d/start"


@pytest.mark.parametrize(
    "source, url, anchor",
    [
        ("[x](../a)", "http://h/a", "x"),
        ('[x](http://h/a "title") b', "http://h/a", "x"),
        ("[x](<../a b>)", "http://h/a%20b", "x"),
        ("[x]( <../a b> 'title' )", "http://h/a%20b", "x"),
        ("[x](http://h/a_(b)) c", "http://h/a_(b)", "x"),
        ("[x](http://h/a\\_b\\))", "http://h/a_b)", "x"),
        ("[x](http://h/?a=1&amp;b=2)", "http://h/?a=1&b=2", "x"),
        ("[two\nlines](http://h/a)", "http://h/a", "two lines"),
        ("[x][1]\n\n[1]: http://h/a 'title'", "http://h/a", "1"),
        ("[x][1]\n\n[1]: <../a b>", "http://h/a%20b", "1"),
        ("see <http://h/a,b.>, please", "http://h/a,b.", ""),
        ("see http://h/a.", "http://h/a", ""),
        ("(see http://h/a)", "http://h/a", ""),
        ("**http://h/a**", "http://h/a", ""),
        ("~~http://h/a~~ and", "http://h/a", ""),
        ("at http://h/?a=1&amp;b=2", "http://h/?a=1&b=2", ""),
        ('<a href="../a">x</a>', "http://h/a", ""),
        ("<A class=b HREF='../a?b&amp;c'>x</A>", "http://h/a?b&c", ""),
    ],
)
def test_a_link_of_markdown_is_one_of_commonmark(source: str, url: str, anchor: str) -> None:
    links = markdown.extract(source.encode(), HERE, None).links
    assert [(link.url, link.anchor) for link in links] == [(url, anchor)]


def test_an_image_in_a_link_gives_both() -> None:
    found = markdown.extract(b"[![alt](i.png)](../a)", HERE, None).links
    assert [(link.url, link.anchor) for link in found] == [
        ("http://h/d/i.png", "alt"), ("http://h/a", "alt"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "source, urls",
    [
        ("a;b\nhttp://h/a;2\n", ["http://h/a"]),
        ("a,b\nhttp://h/a,2\n", ["http://h/a"]),
        ("a\tb\nhttp://h/a,2;3\tc\n", ["http://h/a,2;3"]),
        ("a|b\nhttp://h/a|c\n", ["http://h/a"]),
        ('a,b\n"http://h/a,2",c\n', ["http://h/a,2"]),
        ('a;b\n"see http://h/a, http://h/b.";c\n', ["http://h/a", "http://h/b"]),
        ('a;b\n"http://h/""a""";c\n', ['http://h/"a"']),
        ("a;http://h/a(1);http://h/b.\r\nc;d;e\r\n", ["http://h/a(1)", "http://h/b."]),
        ("http://h/a\nhttp://h/b;c\n", ["http://h/a", "http://h/b"]),
        ("", []),
    ],
)
def test_a_url_ends_with_its_field(source: str, urls: list[str]) -> None:
    """RFC 4180, and with the other separators that spreadsheets write."""
    page = delimited.extract(source.encode(), HERE, "text/csv")
    assert [link.url.replace("%22", '"') for link in page.links] == urls
    assert page.text == " ".join(source.split())


@pytest.mark.parametrize(
    "source, urls",
    [
        ('{"a": "http://h/a"}', ["http://h/a"]),
        ('{"a":"http:\\/\\/h\\/a"}', ["http://h/a"]),
        ('["http://h/?a=1\\u0026b=2", "http://h/a(1)."]', ["http://h/?a=1&b=2", "http://h/a(1)."]),
        ('{"a": "see http://h/a, and\\nhttp://h/b."}', ["http://h/a", "http://h/b"]),
        ('{"a": "<a href=\\"http://h/a\\">"}', ["http://h/a"]),
        ('{"a": 1}\n{"b": "http://h/a"}\n', ["http://h/a"]),
        ('{"a": 1, // http://h/a\n}', ["http://h/a"]),
        ('{"a": "http://h/a', ["http://h/a"]),
        ("see 'http://h/a', \"http://h/b\"", ["http://h/a", "http://h/b"]),
    ],
)
def test_a_url_ends_with_its_string(source: str, urls: list[str]) -> None:
    """RFC 8259 7: without the escapes."""
    assert [link.url for link in text.extract(source.encode(), HERE, None).links] == urls


@pytest.mark.parametrize(
    "source, url",
    [
        ("http://h/a_(b)", "http://h/a_(b)"),
        ("(http://h/a_(b)).", "http://h/a_(b)"),
        ("(http://h/a),", "http://h/a"),
        ("\u201ehttp://h/a\u201c", "http://h/a"),
        ("http://h/a\u3002", "http://h/a"),
    ],
)
def test_punctuation_behind_a_url_is_none_of_it(source: str, url: str) -> None:
    assert list(urls_in(source)) == [url]


@pytest.mark.parametrize(
    "source",
    [b"](" + b"(a" * 200_000, b"](((a" * 50_000, b"]((" * 150_000, b"<a href=" * 50_000,
     b'{"' + b"\\" * 400_000, b'"a' * 200_000, b"http://h/" + b").)" * 150_000],
)  # fmt: skip
def test_a_text_is_gone_through_once(source: bytes) -> None:
    for read in (markdown.extract, delimited.extract, text.extract):
        before = time.process_time()
        read(source, HERE, None)
        assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "module, body",
    [
        (text, b'["' + b'\\"' * 100_000),
        (text, b'{"image":"' + b"a" * 3_000_000 + b'","at":"http://h/x"}'),
        (delimited, b'a;19" monitor\n' + b"b;c\n" * 300_000),
        (markdown, b"[a](" + b" " * 100_000 + b")"),
        (markdown, b"[a]:" + b" " * 100_000),
    ],
)
def test_odd_texts_are_looked_through_in_linear_time_and_memory(module, body: bytes) -> None:
    """Escapes without end, an embedded picture, one quotation mark, spaces."""
    tracemalloc.start()
    before = time.process_time()
    try:
        module.extract(body, "http://h/a", None)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(body) + 1_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - before < 3.0
