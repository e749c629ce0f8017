"""The media type of a response, by its content, its head and its names.

body_type(response)     # "text/csv": octet-stream with Content-Disposition: ...; filename=a.csv
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from larmspider.extraction.body_type import media_type
from larmspider.items import REDIRECT
from larmspider.urls.file_names import name_in, name_of

if TYPE_CHECKING:
    from scrapy.http import Response


def body_type(response: Response) -> str:
    """The media type of the body, in lower case and without parameters."""
    headers = response.headers
    types = dict.get(headers, b"Content-Type")  # Headers.get() takes 5 us
    content_type = types[-1].decode("latin-1") if types else ""
    disposition = dict.get(headers, b"Content-Disposition")
    named = name_in(disposition[-1].decode("latin-1")) if disposition else ""
    meta = response.meta if response.request is not None else {}
    link = meta.get("from_page", "") if meta.get("link_type") == REDIRECT else ""
    return media_type(content_type, response.body, name_of(named, response.url, link))
