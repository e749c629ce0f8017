"""The second reader: Apache Tika (``pip install 'larmspider[tika]'``), for what the others refuse.

It reads doc, ppt, Visio, Works and hundreds of others from inside of this process, and may find
text where the first reader found none. What it gives is XHTML, which html.py reads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from larmspider.extraction import html
from larmspider.extraction.documents.reading import Unread, date_of
from larmspider.extraction.page_builder import MAX_TEXT
from larmspider.items import Outcome, Page

HELPED = (Outcome.NO_READER, Outcome.NO_TEXT, Outcome.DAMAGED)
"""Outcomes of a first reader after which this one is asked."""


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    try:
        xhtml, metadata = _extractor().extract_bytes_to_string(bytearray(body))
    except Exception as error:  # noqa: BLE001 - TypeError, RuntimeError, ... by kind of document
        raise Unread(Outcome.DAMAGED, f"Tika cannot read it: {error}"[:300]) from None
    page = html.extract(xhtml.encode("utf-8", "replace"), url, "text/html; charset=utf-8")
    page.author = "; ".join(metadata.get("dc:creator", ()))[:255]
    page.language = page.language or next(iter(metadata.get("dc:language", ())), None)
    page.modified = next(map(date_of, metadata.get("dcterms:modified", ())), None)
    page.charset = None
    return page


@cache
def _extractor() -> Any:
    import iscc_tika

    without_ocr = iscc_tika.TesseractOcrConfig().set_skip_ocr(True)
    pdf = iscc_tika.PdfParserConfig().set_ocr_strategy(iscc_tika.PdfOcrStrategy.NO_OCR)
    extractor = iscc_tika.Extractor().set_xml_output(True).set_extract_string_max_length(MAX_TEXT)
    return extractor.set_ocr_config(without_ocr).set_pdf_config(pdf)
