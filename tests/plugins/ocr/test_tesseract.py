"""Scanned pages; test_second_reader.py runs tesseract itself."""

from __future__ import annotations

import re

import pytest

from larmspider.plugins.ocr import tesseract
from tests.extraction.documents.test_pdf import read
from tests.support.documents.pdf_file import annotated, one_page


def test_notes_of_a_scanned_page_do_not_make_it_one_of_text(monkeypatch: pytest.MonkeyPatch):
    page = read(annotated(b"/Subtype/Text/Contents(checked)").replace(b"(drawn) Tj", b"        "))
    assert page.text == "\nchecked"
    assert tesseract.is_wanted(page)
    monkeypatch.setattr(tesseract, "_text_of", lambda *_: "scanned words")
    tesseract.read_scans(one_page(b""), page, "eng", float("inf"))
    assert re.split("\n", page.text) == ["scanned words", "checked"]
    assert not tesseract.is_wanted(page)
