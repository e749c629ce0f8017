"""Raised numbers of notes stand apart from their word; turned letters make words."""

from __future__ import annotations

import pytest

from larmspider.extraction.documents.pdfs import pdf
from tests.support.documents.pdf_file import one_page, stream


def text(shown: bytes) -> str:
    """The text of a page that draws ``(shown) Tj``."""
    return pdf.extract(one_page(shown), "http://h/a.pdf", None).text


def raised(before: bytes, number: bytes, behind: bytes) -> bytes:
    return b"%s) Tj 5 Ts (%s) Tj 0 Ts (%s" % (before, number, behind)


@pytest.mark.parametrize(
    ("drawn", "found"),
    [
        (raised(b"word", b"3", b", so"), "word 3, so"),
        (raised(b"word", b"12", b""), "word 12"),
        (raised(b"word", b"iii", b" so"), "word iii so"),
        (raised(b"in 1998", b"3", b""), "in 1998 3"),
        (raised(b"", b"3", b"See there"), "3 See there"),
        (raised(b"x", b"2", b""), "x 2"),  # PDFium's space
        (raised(b"mc", b"2", b""), "mc2"),
        (raised(b"", b"14", b"C"), "14C"),
        (raised(b"word", b"3", b"word"), "word 3 word"),
        (raised(b"CaCO", b"", b"3"), "CaCO3"),
        (b"int32 3rd 10000 taxi vivi", "int32 3rd 10000 taxi vivi"),
        (b"CaCO) Tj -3 Ts (3) Tj 0 Ts ( x", "CaCO3 x"),
    ],
)
def test_the_number_of_a_note_is_no_letter_of_the_word(drawn: bytes, found: str) -> None:
    assert text(drawn) == found


@pytest.mark.parametrize(
    ("drawn", "found"),
    [
        (rb"Guib) Tj [(\264)300] TJ (e, M) Tj [(\250)300] TJ (uller", "Guibé, Müller"),
        (rb"Guib) Tj [(e)560] TJ [(\264)-220] TJ (, x", "Guibé, x"),
        (rb"geht\264s", "geht´s"),
        (rb"a\250b \264x", "a¨b ´x"),
    ],
)
def test_an_accent_that_is_drawn_over_a_letter_is_part_of_it(drawn: bytes, found: str) -> None:
    assert text(drawn) == found


def test_text_beside_the_page_moves_no_space() -> None:
    outside = b"out9side) Tj 1 0 0 1 100 300 Tm (" + raised(b"word", b"3", b"")
    assert text(b"in) Tj 1 0 0 1 5000 500 Tm (" + outside).split() == ["in", "word", "3"]


@pytest.mark.parametrize("matrix", [b"0 1 -1 0", b"0 -1 1 0", b".7 .7 -.7 .7", b".7 -.7 .7 .7"])
def test_turned_letters_make_words(matrix: bytes) -> None:
    turned = b"level here) Tj %s 300 300 Tm (turned words in one) Tj %s 340 300 Tm (line two"
    found = text(turned % (matrix, matrix))
    assert found == "level here turned words in one line two"


def test_a_column_of_numbers_stays_one() -> None:
    column = b") Tj 0 -14 Td (".join(b"above 1 2 3 4 5".split())
    assert text(column) == "above 1 2 3 4 5"


CELLS = b"60 300 Td (cut o) Tj ET BT /F1 12 Tf 86.02 300 Td (other"


@pytest.mark.parametrize(
    ("program", "found"),
    [(b"Calc", "cut o other"), (b"Excel", "cut o other"), (b"Writer", "cut oother")],
)
def test_cells_that_are_cut_off_stand_apart(program: bytes, found: str) -> None:
    body = one_page(b") Tj ET BT /F1 12 Tf " + CELLS, o6=b"<</Creator(%b)>>" % program)
    body = body.replace(b"/Root 1 0 R", b"/Root 1 0 R/Info 6 0 R")
    assert pdf.extract(body, "http://h/a.pdf", None).text == found


@pytest.mark.parametrize(
    ("creator", "found"), [(b"groff version 1.22.4", "farm most all"), (b"x", "farmmost all")]
)
def test_words_of_groff_that_pdfium_joins_stand_apart(creator: bytes, found: str) -> None:
    place = b"60 300 Td (farm) Tj 25.6 0 Td (most) Tj ( all) Tj ET BT /F1 12 Tf 0 0 Td ("
    body = one_page(b") Tj ET BT /F1 12 Tf " + place, o6=b"<</Creator(%b)>>" % creator)
    body = body.replace(b"/Root 1 0 R", b"/Root 1 0 R/Info 6 0 R")
    assert pdf.extract(body, "http://h/a.pdf", None).text == found


def test_letters_that_are_spaced_out_make_words() -> None:
    assert text(b") Tj 4 Tc (spaced words) Tj 0 Tc ( here") == "spaced words here"
    assert text(b"a b c d e f g") == "a b c d e f g"


def test_arabic_whose_letters_stand_from_left_to_right_is_turned_round() -> None:
    """As Chromium writes it: the letters of a word in one piece, in the order of the page."""
    names = b"<</Type/Encoding/Differences[65/uni0628/uni0627/uni062A]>>"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding 7 0 R/ToUnicode 8 0 R>>"
    unicode = (
        b"/CIDInit/ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <00>"
        b"<FF> endcodespacerange 3 beginbfchar <41><062A> <42><0627> <43><0628> endbfchar endcmap"
    )
    shown = b"BT /F1 12 Tf 60 300 Td (ABC) Tj ET"
    body = one_page(o5=font, o7=names, o8=stream(unicode), o4=stream(shown))
    assert pdf.extract(body, "http://h/a.pdf", None).text == "\u0628\u0627\u062a"
