"""Plain text: what is for a printer or a terminal is not text."""

from __future__ import annotations

import pytest

from larmspider.extraction.plain_text import extract


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            ".TH X 1\n\\fBword\\fP(1) \\f[CW]code\\f[] \\f(CWmore\\fR a\\-b \\&.x",
            "word(1) code more a-b .x",
        ),
        ('.\\" remark\n.Dd today\n\\fBword\\fP', "word"),
        ("C:\\fBfolder\n", "C:\\fBfolder"),
        ("a\bab\bb", "ab"),
        ("before\0\0\0\0after", "before after"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_marks_of_a_printer_are_left_out(source: str, text: str) -> None:
    assert extract(source.encode(), "http://h/x.1", None).text.endswith(text)


def test_control_characters_part_words_and_codes_of_terminals_do_not():
    shown = extract(b"na\x1b[1mme\x1b[0m=\x0fvalue\x01other\x1fthird\0\0last", "http://h/a", None)
    assert shown.text == "name=value other third last"
