"""Which extractor reads which media type: ``extractor_for("text/html")`` is html.extract.

A new format is one module with an ``extract`` function and one line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from larmspider.extraction import html, plain_text
from larmspider.items import Page


class Extractor(Protocol):
    """Makes a Page of a response body; pure, never raises for any body."""

    def __call__(self, body: bytes, url: str, content_type: str | None) -> Page:
        """``content_type`` is the HTTP header's whole value, None if there was none."""


EXTRACTORS: Mapping[str, Extractor] = MappingProxyType(
    {
        "text/html": html.extract,
        "application/xhtml+xml": html.extract,
        "text/plain": plain_text.extract,
    }
)
"""Extractor by media type, lower case, without parameters."""


def extractor_for(mime: str) -> Extractor | None:
    """The extractor of ``mime``, whose case and parameters do not matter; None if there is none."""
    return EXTRACTORS.get(mime.partition(";")[0].strip().lower())
