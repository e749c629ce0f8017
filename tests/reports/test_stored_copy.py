"""Which charset a header named, by what was read."""

from __future__ import annotations

import pytest

from larmspider.extraction.texts.charset import decode
from larmspider.reports.stored_copy import (
    SHOWN_CHARS,
    Block,
    charset_as_read,
    html_blocks,
    shown_blocks,
    text_blocks,
)

CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy"


@pytest.mark.parametrize(
    "charset, text",
    [
        ("iso-8859-2", "Žluťoučký"), ("koi8-r", "Привет"), ("windows-1251", "Привет"),
        ("ibm866", "Привет"), ("shift_jis", "社内の案内"), ("euc-jp", "社内の案内"),
        ("iso-8859-15", "5 € Übung"), ("macintosh", "Übung"), ("utf-8", "Übung"),
        ("gb18030", "内部网"), ("utf-16le", "Übung"), ("windows-1253", "Ά"),
    ],
)  # fmt: skip
def test_the_words_that_were_read_tell_it(charset: str, text: str) -> None:
    """Whatever a guess of the bytes alone would be."""
    body = f"<p>{text}</p>".encode(charset)
    found = charset_as_read(body, "text/html", text)  # koi8-u will do for koi8-r
    assert decode(body, f"text/html; charset={found}")[0] == f"<p>{text}</p>"


def test_what_the_body_tells_holds_unless_another_has_more_of_the_words() -> None:
    """Words that stand there as entities, or were not read right, are in no charset."""
    body = f"<meta charset=iso-8859-2><p>{CZECH} &auml;".encode("iso-8859-2")
    assert charset_as_read(body, "text/html", f"{CZECH} ä") == "iso-8859-2"
    assert charset_as_read(body, "text/html", "only ASCII, or \ufffd") == "iso-8859-2"
    wrong = "<meta charset=iso-8859-1><title>Праздники</title>".encode("koi8-r")
    assert charset_as_read(wrong, "text/html", "Праздники") == "koi8-r"


def test_the_text_of_a_page_in_blocks() -> None:
    """Headings, paragraphs and preformatted text, without elements that are no text."""
    markup = """<!doctype html><title>t</title><nav>menu</nav><h1>One &lt;b&gt;</h1>bare <b>te</b>xt
    <ul><li>item<ul><li>in <i>ner</i></ul> after</ul><pre>\n a\n  b\n</pre><table><tr><td>1<td>2
    </table><script>alert(1)</script>tail<br>line ü<!-- c --> end<form>name <button>Go</button>"""
    assert [(block.kind, block.text) for block in html_blocks(markup.encode())] == [
        ("h", "One <b>"), ("p", "bare text"), ("p", "item"), ("p", "in ner"), ("p", "after"),
        ("pre", " a\n  b"), ("p", "1"), ("p", "2"), ("p", "tail"), ("p", "line ü end"),
        ("p", "name"),
    ]  # fmt: skip
    markup = """<div class=related role=navigation>next</div><p class="navheader x">up</p>
    <h2>Calls<a class=headerlink href=#calls>&para;</a></h2><p>see <a href=#>&sect;</a> <a>¶</a>"""
    assert [block.text for block in html_blocks(markup.encode())] == ["Calls", "see ¶"]
    assert html_blocks(b"") == html_blocks(b"<!-- -->") == []
    assert html_blocks(b"<b>" * 100_000) == []


def test_pages_of_a_document_and_what_is_too_long() -> None:
    one, three = text_blocks("a\n b\f \fc")
    assert (one, three) == (Block("pre", "a\n b", 1), Block("pre", "c", 3))
    assert shown_blocks([one, three]) == ([one, three], True)
    long = Block("p", "x" * SHOWN_CHARS)
    assert shown_blocks([long, long]) == ([long], False)
    assert shown_blocks([one, long])[0][1].text == "x" * (SHOWN_CHARS - 4)
    assert shown_blocks([one, long])[1] is False
