"""Dates and times as a spreadsheet shows them, by a section of a format code (format_codes.py).

A date is a number of days since the last days of 1899, or since 1904. Names of days and months are
English or German.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from larmspider.extraction.documents.office.format_codes import Piece, Section

_DAYS, _MONTHS = (
    tuple(tuple(names.split()) for names in languages)
    for languages in (
        (
            "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
            "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
        ),
        (
            "January February March April May June July August September October November December",
            "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        ),
    )
)
_SINCE_1904, _SINCE_1900 = datetime(1904, 1, 1), (datetime(1899, 12, 30), datetime(1899, 12, 31))
_FIELDS = {
    "d": "{0.day}",
    "dd": "{0.day:02}",
    "m": "{0.month}",
    "mm": "{0.month:02}",
    "yy": "{1:02}",
    "yyyy": "{0.year}",
    "h": "{0.hour}",
    "hh": "{0.hour:02}",
    "minute": "{0.minute:02}",
    "s": "{0.second}",
    "ss": "{0.second:02}",
}


def quick_date(section: Section, since_1904: bool) -> Callable[[float], str] | None:
    """A quick function for formats of dates and times in digits; None for other formats."""
    template = ""
    timed = [piece.text[0] for piece in section.pieces if piece.kind == "date"]
    last, at = "", 0
    for kind, text in section.pieces:
        if kind == "date":
            at += 1
            is_minute = text[0] == "m" and (last == "h" or timed[at : at + 1] == ["s"])
            field = _FIELDS.get("minute" if is_minute and len(text) < 3 else text)
            if field is None:
                return None
            template, last = template + field, text[0]
        elif kind in ("literal", "other"):
            template += text.replace("{", "{{").replace("}", "}}")
        else:
            return None
    if not section.is_date:
        return None

    def show(value: float) -> str:
        moment = _moment(value, since_1904, 0)
        return "" if moment is None else template.format(moment, moment.year % 100).strip()

    return show


def shown_date(value: float, section: Section, *, since_1904: bool) -> str:
    pieces = section.pieces
    digits = _fraction_digits(pieces)
    if (moment := _moment(value, since_1904, digits)) is None:
        return ""
    seconds = round(value * 86_400, digits)
    return "".join(_date_pieces(pieces, moment, seconds, german=section.german)).strip()


def _moment(value: float, since_1904: bool, digits: int) -> datetime | None:
    """1900 has a 29th of February, in Excel alone."""
    if not 0 <= value < 2_958_466:
        return None
    start = _SINCE_1904 if since_1904 else _SINCE_1900[value < 60]
    return start + timedelta(seconds=round(value * 86_400, digits))


def _fraction_digits(pieces: tuple[Piece, ...]) -> int:
    """Digits after the point of seconds."""
    text = "".join(
        piece.text[0] if piece.kind in ("date", "elapsed", "digit", "other") else "|"
        for piece in pieces
    )
    found = re.search(r"s\.(0{1,6})", text)
    return len(found[1]) if found else 0


def _date_pieces(
    pieces: tuple[Piece, ...], moment: datetime, seconds: float, *, german: bool
) -> Iterator[str]:
    half = any(piece.kind == "half" for piece in pieces)
    timed = [p.text[0] if p.kind in ("date", "elapsed") else "" for p in pieces]
    last, fraction = "", 0
    for at, (kind, text) in enumerate(pieces):
        if kind == "elapsed":
            unit = {"h": 3_600, "m": 60, "s": 1}[text[0]]
            yield str(int(seconds // unit)).zfill(len(text))
            last = text[0]
        elif kind == "date":
            following = next(filter(None, timed[at + 1 :]), "")
            if text[0] == "m" and len(text) < 3 and (last == "h" or following == "s"):
                yield str(moment.minute).zfill(len(text))
            else:
                yield _date_piece(text, moment, half=half, german=german)
            last = text[0]
        elif kind == "half":
            yield ("AM", "PM")[moment.hour >= 12] if len(text) > 3 else "AP"[moment.hour >= 12]
        elif kind == "digit":
            yield f"{moment.microsecond:06}"[fraction : fraction + 1] or "0"
            fraction += 1
        elif kind in ("literal", "other"):
            yield text


def _date_piece(text: str, moment: datetime, *, half: bool, german: bool) -> str:
    unit, length = text[0], len(text)
    if unit in "ye":
        return f"{moment.year % 100:02}" if unit == "y" and length < 3 else str(moment.year)
    if unit in "dm" and length > 2:
        number = moment.weekday() if unit == "d" else moment.month - 1
        name = (_DAYS if unit == "d" else _MONTHS)[german][number]
        short = 2 if german and unit == "d" else 3
        return name[:short] if length == 3 else name[:1] if unit == "m" and length > 4 else name
    hour = (moment.hour % 12 or 12) if half else moment.hour
    number = {"d": moment.day, "m": moment.month, "h": hour, "s": moment.second}[unit]
    return str(number).zfill(length)
