r"""Tab-separated logs, one record a line: LARM's format, which no byte from the web can break.

A field's tabs, line breaks, NUL and other control characters, and Unicode's line and paragraph
separators, become a space, so the fields read are the fields written:

    >>> log.append("http://h/", "a\ttitle\nof two lines")   # two fields, one line
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from larmspider.errors import CommittedGoneError
from larmspider.pipelines.append_file import AppendFile

_BREAKS = dict.fromkeys(
    (*range(32), *range(127, 160), 8232, 8233), " "
)  # C0, DEL and C1 (NEL among them), LINE SEPARATOR, PARAGRAPH SEPARATOR
_CONTROLS = bytes((*range(32), 127))
# the others in UTF-8; two expressions, for each is found by how it begins
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_SEPARATOR = re.compile(rb"\xe2\x80[\xa8\xa9]")


def clean(field: str) -> str:
    """``field`` on one line and without tabs; unchanged in the ordinary case."""
    return field if field.isprintable() else field.translate(_BREAKS)


class RecordLog:
    """A file of records that grows at its end. Text is UTF-8; lone surrogates become ``?``.

    ``columns`` fixes how many fields a record has: another number raises ValueError.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)
        self._file = AppendFile(path)

    def append(self, *fields: str) -> None:
        """Write one record."""
        self.extend([fields])

    def extend(self, records: Iterable[Sequence[str]]) -> int:
        """Write records in one go and return how many there were."""
        records = list(records)
        width = len(self.columns)
        if wrong := {len(record) for record in records} - {width}:
            raise ValueError(f"{self.path.name} has {width} columns, the record {min(wrong)}")
        lines = _lines(records)
        # one look at all of them: a page has hundreds of links, and few have anything to clean
        if _needs_cleaning(lines, width * len(records)):
            lines = _lines([[clean(field) for field in record] for record in records])
        self._file.write(lines)
        return len(records)

    def flush(self) -> bytes:
        """Hand what is buffered to the operating system; the position for ``truncate_file``.

        Raises OSError, from the first failed write on each time.
        """
        return b"%d" % self._file.flush()

    def sync(self) -> None:
        """Wait until what was flushed is on disk."""
        self._file.sync()

    def close(self) -> None:
        """As AppendFile.close()."""
        self._file.close()


def _lines(records: Sequence[Sequence[str]]) -> bytes:
    lines = ["\t".join(record) for record in records]
    lines.append("")
    return "\n".join(lines).encode("utf-8", "replace")


def _needs_cleaning(lines: bytes, ends: int) -> bool:
    """Whether there is more to break them than the ``ends`` of their fields; 15 us for a page of
    140 links, where str.isprintable() takes 30."""
    if len(lines) - len(lines.translate(None, _CONTROLS)) > ends:
        return True
    return not lines.isascii() and bool(_C1.search(lines) or _SEPARATOR.search(lines))


def truncate_file(path: Path, position: bytes) -> None:
    """Drop what lies behind a position that flush() gave; b"" is the beginning.

    Raises CommittedGoneError if the file is shorter: what was committed is not there.
    """
    end = int(position or b"0")
    size = path.stat().st_size if path.exists() else 0
    if size < end:
        raise CommittedGoneError(f"{path} has {size} bytes, {end} were committed")
    if size > end:
        os.truncate(path, end)


def read_records(path: Path, columns: int, start: int = 0) -> Iterable[list[str]]:
    """The records of a log that may still be growing; a last line without its end is left out.
    ``start``: the byte at which one begins."""
    with path.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            fields = line[:-1].decode("utf-8", "replace").split("\t")
            if len(fields) == columns:
                yield fields
