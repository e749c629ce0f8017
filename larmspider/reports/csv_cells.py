r"""CSV that a spreadsheet takes for text: a link text ``=HYPERLINK(...)`` is no formula.

A cell that begins with one of ``= + - @``, a tab or a line break gets an apostrophe before it
(OWASP, "CSV Injection"), and so does one that begins so after white space or a quote.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def defused(cell: object) -> str:
    """Numbers stay what they are.

    >>> defused("=1+1"), defused(" @x"), defused(-3), defused("a=b")
    ("'=1+1", "' @x", '-3', 'a=b')
    """
    text = str(cell)
    if isinstance(cell, int | float):
        return text
    inner = text.lstrip(" \"'\xa0")
    return f"'{text}" if text.startswith(_STARTS) or inner.startswith(_STARTS) else text


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180, with CRLF."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([defused(cell) for cell in row] for row in rows)
    return out.getvalue()
