"""Numbers, times and text for people: 32.5 kB, 2 h 05 min, 1,234,567.

>>> size(32_500), duration(7_500), count(1234567), rate(12.34)
('32.5 kB', '2 h 05 min', '1,234,567', '12.3')
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


def utc(epoch: float) -> str:
    """Seconds since the epoch as ``2026-01-31T12:00:00.000Z``."""
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")[:23] + "Z"


_CLEAR = "\r\x1b[K"


def printable(text: str) -> str:
    """``text`` with replacement characters for unprintable ones: no escape sequence from the web
    reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


INVISIBLE = (
    "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
"""The invisible format characters (Unicode's category Cf), as in a class of a regular expression.
They turn the direction of their neighbours, or hide among them."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_NOT_FOR_JSON = re.compile(f"[\x7f-\x9f\u2028\u2029{INVISIBLE}]")


def readable(text: str) -> str:
    """``text`` of a page for a terminal: without invisible characters such as a soft hyphen, and
    otherwise printable()."""
    return printable(text if text.isascii() else _INVISIBLE.sub("", text))


JOINERS = "\u00ad\u200c\u200d"
"""Soft hyphen, non-joiner and joiner: German, Persian and emoji need them to be written right."""
_NO_WIDTH = dict.fromkeys(map(ord, "\u200b\u2060\ufeff"))


def legible(text: str) -> str:
    """``text`` for a web page: printable(), but with JOINERS, and without characters of no width.
    A text of nothing else is ""."""
    if text.isprintable():
        return text
    text = text.translate(_NO_WIDTH)
    if not text.strip(JOINERS):
        return ""
    return "".join(char if char in JOINERS else printable(char) for char in text)


def escaped(text: str) -> str:
    r"""``text`` with its invisible characters written as in Python.

    >>> escaped("invoice\u202efdp.exe")
    'invoice\\u202efdp.exe'
    """
    return text if text.isascii() else _INVISIBLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def defused(cell: object) -> str:
    """A cell of CSV that no spreadsheet takes for a formula; numbers stay as they are.

    A cell that begins with one of ``= + - @``, a tab or a line break, perhaps after white space or
    a quote, gets an apostrophe before it (OWASP, "CSV Injection").

    >>> defused("=1+1"), defused(" @x"), defused(-3), defused("a=b")
    ("'=1+1", "' @x", '-3', 'a=b')
    """
    text = str(cell)
    if isinstance(cell, int | float):
        return text
    inner = text.lstrip(" \"'\xa0")
    return (
        f"'{text}"
        if text.startswith(_FORMULA_STARTS) or inner.startswith(_FORMULA_STARTS)
        else text
    )


def json_escaped(text: str) -> str:
    """JSON that is the same data, with its invisible characters, and controls, as escapes."""
    return _NOT_FOR_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


@contextmanager
def doing(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show the work under way on a terminal, until it is done; nothing elsewhere or with TERM=dumb.

    with doing("Counting links") as progress:     # Counting links ...
        progress(5, 20)                           # Counting links: 25%
    """
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield lambda _done, _whole: None
        return

    def say(text: str) -> None:
        sys.stderr.write(f"{_CLEAR}{text}")
        sys.stderr.flush()

    say(f"{what} ...")
    try:
        yield lambda done, whole: say(f"{what}: {done / max(1, whole):.0%}")
    finally:
        say("")


_UNITS = ("kB", "MB", "GB", "TB", "PB")


def size(number: float) -> str:
    """Bytes; 1 kB is 1,000 bytes."""
    if number < 1000:
        return f"{number:,.0f} bytes"
    step = min(len(_UNITS), int(math.log10(number)) // 3)
    if number / 1000**step >= 999.95 and step < len(_UNITS):
        step += 1
    return f"{number / 1000**step:,.1f} {_UNITS[step - 1]}"


def duration(seconds: float) -> str:
    """The two largest units: ``0.3 s``, ``12 s``, ``4 min 05 s``, ``2 h 05 min``, ``3 d 04 h``."""
    if seconds == math.inf:
        return "never"
    if seconds < 0.95:
        return f"{max(0.0, seconds):.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.3g} s" if seconds < 10 else f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole // 60 % 60:02d} min"
    return f"{whole // 86_400:,} d {whole // 3_600 % 24:02d} h"


def count(number: float) -> str:
    """The number with a comma between thousands."""
    return f"{number:,.0f}"


def counted(number: int, what: str, many: str = "") -> str:
    """``1 host``, ``2 hosts``; ``many`` is the plural where an s is not enough."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def rate(number: float) -> str:
    """Three significant digits: 0.05, 1.23, 12.3, 123, 1,234."""
    if number and number < 0.1:
        return f"{number:.2g}"
    for limit, digits in ((10, 2), (100, 1)):
        if number < limit:
            return f"{number:.{digits}f}"
    return f"{number:,.0f}"
