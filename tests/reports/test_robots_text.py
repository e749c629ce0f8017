"""A robots.txt as stored, with the lines for this crawler and the one that decides."""

from __future__ import annotations

from larmspider.reports.hosts import SHOWN, robots_text

BODY = b"""User-agent: other
Disallow: /

User-agent: larmspider
User-agent: third
Crawl-delay: 2
Disallow: /private/
Allow: /private/rota.html
Sitemap: http://h/map.xml
User-agent: *
Disallow: /everyone
"""


def test_the_lines_for_us_are_marked() -> None:
    """Our group's, and of the others none."""
    text = robots_text(BODY, "larmspider/0.1")
    assert [line.number for line in text.lines if line.ours] == [4, 6, 7, 8]
    assert text.crawl_delay == 2.0
    assert (text.allowed, text.left_out, len(text.lines)) == (None, 0, 11)
    others = robots_text(BODY, "unnamed/1")
    assert [line.number for line in others.lines if line.ours] == [10, 11]


def test_the_deciding_line_is_named() -> None:
    """The longest rule wins; where none matches, all is allowed."""
    for url, allowed, number in (
        ("http://h/private/plan.html", False, 7),
        ("http://h/private/rota.html", True, 8),
        ("http://h/open", True, None),
    ):
        text = robots_text(BODY, "larmspider/0.1", url)
        decides = [line.number for line in text.lines if line.decides]
        assert (text.allowed, decides) == (allowed, [number] if number else [])


def test_of_a_long_file_our_lines_are_shown() -> None:
    """And the first others, each cut where it is too wide."""
    others = b"".join(b"Disallow: /%d\n" % n for n in range(3000))
    body = b"User-agent: other\n" + others + b"User-agent: *\nDisallow: /" + b"x" * 5000 + b"\n"
    text = robots_text(body, "larmspider", "http://h/" + "x" * 6000)
    assert len(text.lines) == SHOWN + 2
    assert text.left_out == 3003 - SHOWN - 2
    assert text.lines[-1].decides
    assert len(text.lines[-1].text) < 400


def test_the_deciding_line_is_shown_however_many_are_ours() -> None:
    """Of 3,000 rules the last."""
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % n for n in range(3000))
    text = robots_text(body, "larmspider", "http://h/2999/x")
    assert text.lines[-1].text == "Disallow: /2999/"
    assert text.lines[-1].decides
    assert len(text.lines) == 2 * SHOWN + 1
