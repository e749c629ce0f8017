"""Pages as Markdown, by section."""

from __future__ import annotations

from larmspider.items import Section
from larmspider.reports.markdown import Part, html_parts, text_parts, window, within
from larmspider.reports.stored_copy import html_blocks

MARKUP = b"""<body><p>First.<h1>Pumps</h1><p>Two kinds:<ul><li>hand<li><p>motor</p><p>loud</p>
<ol><li>one</li><li>two</li></ol></ul><p>After.<h2 id=x>Oil</h2><pre>
a ``` b
 c</pre><dl><dt>pump.start()<dd>Begins.</dl><h2>Water</h2><p>Cold.
<section id=end><h2>End</h2></section>"""
SECTIONS = [Section(0, "o", "Oil"), Section(0, "s", "pump.start()"), Section(0, "w", "Water")]
OIL = "## Oil\n\n````\na ``` b\n c\n````"


def test_headings_lists_and_code() -> None:
    """A section begins with each heading, and with what the index takes for one."""
    parts = html_parts(html_blocks(MARKUP), SECTIONS)
    assert parts == [
        Part("", "", 0, "First."),
        Part(
            "", "Pumps", 1,
            "# Pumps\n\nTwo kinds:\n\n- hand\n- motor\n  loud\n  1. one\n  2. two\n\nAfter.",
        ),
        Part("o", "Oil", 2, OIL),
        Part("s", "pump.start()", 3, "pump.start()\n\nBegins."),
        Part("w", "Water", 2, "## Water\n\nCold."),
        Part("end", "End", 2, "## End"),
    ]  # fmt: skip
    assert within(parts, "o") == parts[2:4]
    assert within(parts, "w") == parts[4:5]
    assert within(parts, "end") == parts[5:]
    assert within(parts, "x") == []


def test_texts_without_markup() -> None:
    """Pages of a PDF, and the sections that the index has."""
    assert text_parts("a\f \fc", []) == [Part("page=1", "", 0, "a"), Part("page=3", "", 0, "c")]
    found = text_parts("Intro. Oil Is black. Free.", [Section(7, "o", "Oil"), Section(21, "", "")])
    assert found == [
        Part("", "", 0, "Intro."), Part("o", "Oil", 2, "## Oil\n\nIs black."),
        Part("", "", 2, "Free."),
    ]  # fmt: skip
    assert text_parts("", []) == [Part("", "", 0, "")]


def test_what_is_too_long_is_read_on() -> None:
    """Piece by piece nothing is lost, and no word is cut."""
    parts = [Part("a", "A", 2, "one two three four"), Part("b", "B", 2, "five " * 300 + "x" * 500)]
    whole, start, read, pieces = "\n\n".join(one.text for one in parts), 0, "", 0
    while True:
        found = window(parts, start, 250)
        assert found.whole == len(whole)
        text = "\n\n".join(one.text for one in found.parts)
        assert len(text) <= 250
        assert whole.startswith(text, start) or whole[start:].lstrip().startswith(text)
        read, pieces = read + text, pieces + 1
        if found.next is None:
            break
        start = found.next
    assert pieces > 5
    assert read.replace("\n\n", "") == whole.replace("\n\n", "")
    assert window(parts, 0, 18).parts == [parts[0]]
    assert window(parts, 0, 18).next == 18
    assert window(parts, 19, 8).parts == [Part("b", "B", 2, "five ")]
