"""All valid files, by whatever writes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks.valid_documents import libreoffice, pdfs
from benchmarks.valid_documents.made import Made

_BY_HAND = ("mails", "texts", "archives", "media", "office")


def by_hand(wanted: set[str]) -> Iterator[Made]:
    """Files that need no program. ``wanted``: formats, all if empty."""
    for module in _BY_HAND:
        for made in import_module(f"benchmarks.valid_documents.{module}").files():
            if not wanted or made.format in wanted:
                yield made


def files(folder: Path, wanted: set[str]) -> Iterator[Made]:
    """``wanted``: formats, all if empty."""
    yield from by_hand(wanted)
    yield from pdfs.files(folder, wanted)
    if libreoffice.is_there():
        yield from libreoffice.files(folder, wanted)
    else:
        print("soffice is not installed: LibreOffice's files are left out", file=sys.stderr)
