r"""Tab-separated logs, one record a line: LARM's format, which no byte from the web can break.

A field's tabs, line breaks, NUL and other control characters, and Unicode's line and paragraph
separators, become a space, so the fields read are the fields written:

    >>> log.append("http://h/", "a\ttitle\nof two lines")   # two fields, one line
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

_BREAKS = dict.fromkeys(
    (*range(32), *range(127, 160), 8232, 8233), " "
)  # C0, DEL and C1 (NEL among them), LINE SEPARATOR, PARAGRAPH SEPARATOR
_BUFFER_BYTES = 256 * 1024


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
        self._file = path.open("ab", buffering=_BUFFER_BYTES)

    def append(self, *fields: str) -> None:
        """Write one record."""
        self.extend([fields])

    def extend(self, records: Iterable[Sequence[str]]) -> int:
        """Write records in one go and return how many there were."""
        width = len(self.columns)
        lines = []
        for record in records:
            if len(record) != width:
                raise ValueError(f"{self.path.name} has {width} columns, the record {len(record)}")
            lines.append("\t".join(map(clean, record)))
        if lines:
            lines.append("")
            self._file.write("\n".join(lines).encode("utf-8", "replace"))
        return max(0, len(lines) - 1)

    def flush(self) -> None:
        """Hand what is buffered to the operating system."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_records(path: Path, columns: int) -> Iterable[list[str]]:
    """The records of a log that may still be growing; a last line without its end is left out."""
    with path.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                return
            fields = line[:-1].decode("utf-8", "replace").split("\t")
            if len(fields) == columns:
                yield fields
