"""How much of valid documents is found: files in odd but valid forms, each with known words.

    python -m benchmarks.document_corpus                        # all formats, some minutes
    python -m benchmarks.document_corpus --only docx pdf --misses
    python -m benchmarks.document_corpus --packages FOLDER      # packages unpacked by dpkg -x

The files are made anew in a temporary folder (``--folder`` keeps them): by
`benchmarks.valid_documents`, which writes each form by itself, and by LibreOffice, reportlab,
Chromium, groff and 7z. What is not installed is left out, and a line says so.

The words come from the generator; those of a package's files from pdftotext, unzip, man and the
like. A word has two letters or more, and is compared in NFKC and lower case. A file is found if 99%
of its words are in the title, author, text, description or parts that the crawl would index.
``LARM_SECOND_READER`` is auto.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from benchmarks.valid_documents import every, packages
from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.words import words_of
from larmspider.extraction.formats import add_outcome, media_type
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.processes.process_child import Helpers
from larmspider.items import Page

FOUND = 0.99
"""Share of its words that makes a file found."""


@dataclass
class Row:
    """A format: how many files and words were found."""

    files: int = 0
    with_text: int = 0
    found: int = 0
    words: int = 0
    words_found: int = 0
    silent: list[str] = field(default_factory=list)
    """Files without text and without outcome."""
    misses: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.found / self.files

    @property
    def share_of_words(self) -> float:
        return self.words_found / self.words if self.words else 1.0


class Reader:
    """Reads files as a crawl of a share does."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def page(self, made: Made) -> Page:
        mime = media_type(made.said, made.body, made.name)
        charset = made.said.partition("charset=")[2]
        page = self._readers.read_again(mime, made.body, f"http://h/{quote(made.name)}", charset)
        page.body = made.body
        add_outcome(page)
        return page


def shown(page: Page) -> str:
    """All that is searched of a page."""
    pieces = [page.title, page.author, page.text, page.description]
    for part in page.parts:
        pieces += part.name, part.title, part.author, part.text
    return "\n".join(pieces)


def _quiet(_: str) -> None:
    pass


def measure(
    reader: Reader, files: Iterable[Made], say: Callable[[str], None] = _quiet
) -> dict[str, Row]:
    """Read all ``files``; call ``say`` with each one that is not found."""
    rows: defaultdict[str, Row] = defaultdict(Row)
    for made in files:
        row, wanted = rows[made.format], words_of(made.text)
        page = reader.page(made)
        missed = wanted - words_of(shown(page))
        row.files += 1
        has_text = bool(page.text) or any(part.text for part in page.parts)
        row.with_text += has_text
        row.words += len(wanted)
        row.words_found += len(wanted) - len(missed)
        if not has_text and not page.unread:
            row.silent.append(made.name)
        if len(missed) <= (1 - FOUND) * len(wanted):
            row.found += 1
        else:
            few = " ".join(sorted(missed)[:12])
            row.misses.append(f"{made.name}: {len(missed)} of {len(wanted)}: {few} [{page.unread}]")
            say(f"{made.format}: {row.misses[-1]}")
    return dict(rows)


@contextmanager
def reading() -> Iterator[Reader]:
    with Readers(helpers=Helpers(second_reader="auto")) as readers:
        yield Reader(readers)


def table(rows: dict[str, Row]) -> Iterator[str]:
    yield "| format | files | with text | 99% of their words | words | no text, no outcome |"
    yield "|---|---|---|---|---|---|"
    for name, row in rows.items():
        yield (
            f"| {name} | {row.files} | {row.with_text} | {row.share:.1%} | "
            f"{row.share_of_words:.2%} | {len(row.silent)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="FORMAT", help="these formats")
    parser.add_argument("--packages", type=Path, help="folder of unpacked packages, read instead")
    parser.add_argument("--folder", type=Path, help="where files are made, and used again")
    parser.add_argument("--misses", action="store_true", help="name the files that are not found")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    say = partial(print, file=sys.stderr, flush=True) if options.misses else _quiet
    with tempfile.TemporaryDirectory() as temporary, reading() as reader:
        folder = options.folder or Path(temporary)
        if options.packages:
            files = packages.files(options.packages, set(options.only))
        else:
            files = every.files(folder, set(options.only))
        rows = dict(sorted(measure(reader, files, say).items()))
    if options.json:
        print(json.dumps({name: vars(row) for name, row in rows.items()}, indent=1))
        return
    print("\n".join(table(rows)))
    for name, row in rows.items():
        for silent in row.silent:
            print(f"{name}: {silent} has neither text nor outcome")
    sys.exit(any(row.silent for row in rows.values()))


if __name__ == "__main__":
    main()
