"""Thumbnails of documents, for a search: the first page of a PDF, or a reduced image.

    picture("application/pdf", body, 184)      # a JPEG

It runs in a process that may die: PDFium and Pillow decode files from any uploader.
"""

from __future__ import annotations

import io
import math
import warnings
from contextlib import closing

import pypdfium2 as pdfium
from PIL import Image

from larmspider.extraction.documents.reading import Unread
from larmspider.items import Outcome

PDF = "application/pdf"
_FORMATS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
}
TYPES = frozenset({PDF, *_FORMATS})
"""Media types that have a picture."""
MOST_PIXELS = 40_000_000
"""The largest image that is decoded, which takes 160 MB."""
TALLEST = 1.5
"""Times the width; what is taller is made smaller."""
_QUALITY = 75  # a page of text of 184 by 260 pixels has 7 kB, and can be told from others


def picture(mime: str, body: bytes, width: int) -> bytes:
    """A JPEG, at most ``width`` pixels wide and TALLEST times as high. Raises Unread."""
    if mime not in TYPES:
        raise Unread(Outcome.NO_READER, f"{mime} has no picture")
    box = (width, math.floor(width * TALLEST))
    drawn = _first_page(body, box) if mime == PDF else _image(body, _FORMATS[mime], box)
    out = io.BytesIO()
    drawn.save(out, "JPEG", quality=_QUALITY, optimize=True)
    return out.getvalue()


def _first_page(body: bytes, box: tuple[int, int]) -> Image.Image:
    try:
        with closing(pdfium.PdfDocument(body)) as document, closing(document[0]) as page:
            wide, high = page.get_size()
            if not (0 < wide < math.inf and 0 < high < math.inf):
                raise Unread(Outcome.DAMAGED, "its first page has no size")
            scale = min(box[0] / wide, box[1] / high)
            with closing(page.render(scale=scale, may_draw_forms=False)) as bitmap:
                drawn: Image.Image = bitmap.to_pil().convert("RGB")
                return drawn
    except (pdfium.PdfiumError, IndexError) as error:
        raise Unread(Outcome.DAMAGED, f"PDFium draws no page of it: {error}") from None


def _image(body: bytes, form: str, box: tuple[int, int]) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(body), formats=(form,)) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise Unread(Outcome.TOO_LARGE, f"it has more than {MOST_PIXELS:,} pixels")
                image.draft("RGB", box)  # a JPEG is decoded at about this size
                image.thumbnail(box)
                drawn = Image.new("RGB", image.size, "white")
                seen = image.convert("RGBA")
                drawn.paste(seen, mask=seen)
                return drawn
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise Unread(Outcome.DAMAGED, f"Pillow reads no {form} in it: {error}") from None
