"""Text of scanned pages, by tesseract (Debian: tesseract-ocr and a tesseract-ocr-LANGUAGE).

read_scans(body, page, "deu+eng", time.monotonic() + 120)    # fills pages of a PDF without text
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress

import pypdfium2 as pdfium

from larmspider.errors import ConfigError
from larmspider.extraction.pages.page_builder import one_line
from larmspider.extraction.processes import progress
from larmspider.items import Outcome, Page, Part

_DPI = 200
_MAX_PIXELS = 5_000
"""Pixels of the longer side; a page of A3 at 300 dpi has 4,961."""


def check(languages: str) -> None:
    """Raise ConfigError if tesseract or one of its languages is not installed."""
    program = shutil.which("tesseract")
    if program is None:
        raise ConfigError(f"LARM_OCR={languages}: tesseract is not installed (tesseract-ocr)")
    listed = subprocess.run(  # noqa: S603 - the program of the system, no shell
        [program, "--list-langs"], capture_output=True, text=True, check=False, timeout=60
    )
    known = (listed.stdout + listed.stderr).splitlines()[1:]
    for name in languages.split("+"):
        if name not in known:
            raise ConfigError(
                f"LARM_OCR={languages}: expected languages of tesseract ({', '.join(known)})"
                f" with + between them; {name or 'an empty one'} is not installed"
                f" (tesseract-ocr-{name or 'deu'})"
            )


def is_wanted(page: Page | Part) -> bool:
    """Whether a PDF that was read has a page that draws no text (pdf.py: in its first line)."""
    no_text = page.unread.startswith(Outcome.NO_TEXT)
    return no_text or (
        not page.unread and any(text[:1] in ("", "\n") for text in page.text.split("\f"))
    )


def read_scans(body: bytes, page: Page, languages: str, ends: float) -> None:
    """Read scans until ``ends``, a time of time.monotonic(); the text until then is kept."""
    texts = page.text.split("\f")
    document = pdfium.PdfDocument(body)
    late = False
    try:
        texts += [""] * (len(document) - len(texts))
        for number, text in enumerate(texts[: len(document)]):
            left = ends - time.monotonic()
            if text[:1] not in ("", "\n") or left <= 0:
                late |= left <= 0
                continue
            with suppress(pdfium.PdfiumError):  # a page that is damaged
                texts[number] = _text_of(document, number, languages, left) + text
                progress.pages(texts)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        document.close()
    page.text = "\f".join(texts) if any(texts) else ""
    page.unread = ""
    if late:
        page.unread = f"{Outcome.TOO_LONG}: not all scanned pages were read in LARM_OCR_SECS"
    elif not page.text:
        page.unread = f"{Outcome.NO_TEXT}: tesseract found none either"


def _text_of(document: pdfium.PdfDocument, number: int, languages: str, seconds: float) -> str:
    page = document[number]
    scale = min(_DPI / 72, _MAX_PIXELS / max(*page.get_size(), 1))
    bitmap = page.render(scale=scale, grayscale=True, rev_byteorder=False)
    width, height, stride = bitmap.width, bitmap.height, bitmap.stride
    rows = memoryview(bytes(bitmap.buffer))
    pixels = b"".join(rows[at * stride : at * stride + width] for at in range(height))
    bitmap.close()
    page.close()
    done = subprocess.run(  # noqa: S603 - the program of the system, no shell
        ["tesseract", "stdin", "stdout", "-l", languages, "--dpi", str(_DPI)],  # noqa: S607
        input=b"P5 %d %d 255\n%b" % (width, height, pixels),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=seconds,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        check=False,
    )
    return one_line(done.stdout.decode("utf-8", "replace"), 1_000_000)
