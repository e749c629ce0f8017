"""Markup that would make lexbor slow or fat differs from markup that is only long."""

import random
from pathlib import Path

import pytest

from larmspider.extraction.pages import markup_guard as costly_markup
from larmspider.extraction.pages.markup_guard import is_costly

MANY = 20_000
ATTRIBUTES = " ".join(f"a{n}" for n in range(50))


def formats(count: int) -> str:
    return "<p>" + "".join(f"<b a={n}>" for n in range(count)) + "<p>x" * count


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * MANY,
        "<DIV>" * MANY,
        "<div a='>' b=\"</div>\">" * MANY,
        "<div/>" * MANY,
        "<div>" * MANY + "</div>" * MANY,
        "<ul><li>" * MANY,
        "<dl><dd>" * MANY,
        "<table><tr><td>" * MANY,
        "<svg>" + "<g>" * MANY,
        "<div><!--</div>-->" * MANY,
        "<div><script>'</div>'</script>" * MANY,
        "<div></x>" * MANY,
        "<span><div></span></div>" * MANY,
        "<div><table><td></div></td></table>" * MANY,
        formats(1_000),
        "<div>" * 600 + "".join(f"<b id={n}>" for n in range(600)) + "</div>x" * 600,
        "".join(f"<b id={n} {ATTRIBUTES}><p>" for n in range(150)),
        f"<p><b a='>' {ATTRIBUTES * 10}>" + "<p>x" * 3_000,
        f"<p><a href=x {ATTRIBUTES * 10}>" + "<p>x" * 3_000,
        f"<p><a href=x a='>' {ATTRIBUTES * 10}>" + "<p>x" * 3_000,
        formats(10_000),
        "<a " + " ".join(f"a{n}" for n in range(MANY)) + ">",
        "<a " + " ".join(f"a{n}='<>'" for n in range(9_000)) + ">",
        "<a " + " ".join(f"a{n}" + "='<>'" * (n % 500 == 0) for n in range(MANY)) + ">",
        "<a " + " ".join(f"a{n}" + "=b=' c='>'" * (n % 150 == 0) for n in range(MANY)) + ">",
        ("<br " + " ".join(f"a{n}" for n in range(1_200)) + ">") * 20,
        "".join(f"<html a{n}>" for n in range(MANY)),
    ],
    ids=lambda markup: markup[:24],
)
def test_costly(markup):
    """End tags that a parser ignores, or that are no tags, do not hide the depth."""
    assert is_costly(markup.encode())


@pytest.mark.parametrize(
    "markup",
    [
        "",
        "<div>x</div>" * MANY,
        "<br><img src=x>" * MANY,
        "<p>x" * MANY,
        "<ul>" + "<li>x" * MANY,
        "<table>" + "<tr><td>x<td>y" * MANY,
        "<select>" + "<option>x" * MANY,
        "<p><b>x</b> <i class=a>y</i>" * MANY,
        "<div><b><i>x</b></i></div>" * MANY,
        "<ul><li><div></ul>" * MANY,
        "<a href=x title='a > b'>x</a>" * MANY,
        "<svg>" + "<path d='M 1 2'/>" * MANY + "</svg>",
        "<script>" + "document.write('<div>');" * MANY + "</script>",
        "<!--" + "<div>" * MANY + "-->",
        "<pre>" + "x" * 200_000 + "</pre>",
        "<" * MANY,
        "".join(f"<p class=a><i class=b{n}>x</i></p>" for n in range(200)),
        "<div>" * 1_000 + "<p>some words</p>" * 5_000,
        "<div>" * costly_markup.MAX_DEPTH + "<br>" * MANY,
    ],
    ids=lambda markup: markup[:24],
)
def test_long_but_harmless(markup):
    assert not is_costly(markup.encode())


@pytest.mark.acceptance
def test_documentation_is_hardly_ever_costly():
    paths = sorted(Path("/usr/share/doc/python3.11-doc/html").rglob("*.html"))
    if not paths:
        pytest.skip("Debian package python3.11-doc is not installed")
    assert sum(is_costly(path.read_bytes()) for path in paths) <= len(paths) / 100


@pytest.mark.parametrize(
    "tag",
    [
        b"<b id=1",
        b"<CODE\nclass=x",
        b"<small/",
        b"<tt\v",
        b"<a " + b"x" * 511,
        b"<A/" + b"\xff\n" * 256,
        b"<a href='x\">",
        b'<a href=">" title=">',
        b'<a href="x" title=\'\xe9',
        b"<a\vhref='>",
    ],
)
def test_what_may_copy_is_not_overlooked(tag):
    """The first look by RE2 finds whatever the expressions do that count."""
    markup = b"<p>x" * 2_000 + tag
    assert costly_markup._copies(markup) > 0


def test_markup_that_copies_nothing():
    assert not costly_markup._copies(b"<p class=a><b>x</b> <a href='x' title=\"y\">z</a>" * 500)


PIECES = r"""
    <div> </div> <div>x</div> <div></span> <a> </a> <a>x</a> <a>x</ab> <code>x</code>x <b> </b> <p>
    </p> <br> <svg> </svg> <g/> <html> <h1 </div> <a/> < </ <!--</div>--> <!-- <script></div>
    </script> <title></div></title> <a/b> <span>x</span <!--> <!---> --!>
"""
WITH_BLANKS = ["</a\n", "<a>x</a ", "<div>x</div\n<!--", "<span></span <title>", " "]


@pytest.mark.parametrize(
    "before",
    [
        b"<!-->",
        b"<!--->",
        b"<!-- --!>",
        b"<a>x</a <script>",
        b"<div>x</div/<title>",
        b"<a></a\n<!--",
    ],
)
def test_markup_behind_what_only_seems_to_hide_it_counts(before):
    """Comments end at these, too, and an end tag may have attributes."""
    assert is_costly(before + b"<div>" * 30_000)


def test_tags_that_end_at_their_first_end_are_read_as_all_are(monkeypatch):
    """With and without their attributes; an element that holds text alone may be one more."""
    limits = {name: getattr(costly_markup, name) for name in ("MAX_DEPTH", "MAX_FORMATS")}
    chance, pieces = random.Random(7), [*PIECES.split(), *WITH_BLANKS]
    found = {True: 0, False: 0}

    def is_costly_with(most: int, is_plain: bool) -> bool:
        for name in limits:
            monkeypatch.setattr(costly_markup, name, most)
        monkeypatch.setattr(costly_markup, "_may_have_long_tags", lambda _: not is_plain)
        return costly_markup._read_tags(markup)

    for _ in range(5_000):
        markup = "".join(chance.choices(pieces, k=chance.randrange(30))).encode()
        most = chance.randrange(2, 6)
        costly = is_costly_with(most, is_plain=True)
        found[costly] += 1
        if costly != is_costly_with(most, is_plain=False):
            assert not costly
            assert not is_costly_with(most + 1, is_plain=False)
    assert min(found.values()) > 1_000
