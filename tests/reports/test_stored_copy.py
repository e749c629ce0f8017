"""Which charset a header named, by what was read."""

from __future__ import annotations

import pytest

from larmspider.extraction.charset import decode
from larmspider.reports.stored_copy import charset_as_read

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
