"""Formats that no reader of the base install knows; the second reader (tika.py) may."""

from __future__ import annotations

from typing import NoReturn

from larmspider.extraction.documents.ole import NEEDS_ANOTHER
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Outcome


def extract(body: bytes, url: str, content_type: str | None) -> NoReturn:
    if not body:
        raise Unread(Outcome.NO_TEXT, "it is empty")
    raise Unread(Outcome.NO_READER, NEEDS_ANOTHER)
