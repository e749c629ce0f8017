"""A number as a spreadsheet shows it, by the format code of its cell (ECMA-376-1 18.8.30, 18.8.31).

    shown(45357, "dd.mm.yyyy")          # "06.03.2024"
    shown(47115, "00000000")            # "00047115"
    shown(0.195, "0.0%")                # "19.5%"

A program that opens the file writes dates and decimals in the way of its own country, which no file
says: decimals have a point here, format 14 is 06.03.2024 and 3/6/2024. Names of days and months are
English or German. Not done are eras, other calendars, other digits, and formats of text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

_SHORT_DATE = "dd.mm.yyyy m/d/yyyy"
BUILTIN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: _SHORT_DATE,
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: f"{_SHORT_DATE} h:mm",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    **dict.fromkeys((5, 6, 37, 38, 41, 42), "#,##0;-#,##0"),
    **dict.fromkeys((7, 8, 39, 40, 43, 44), "#,##0.00;-#,##0.00"),
}
"""Format codes by their ids (18.8.30), where all languages have the same."""

_MAX_CODE, _MAX_PIECES = 255, 80
"""Characters of a format code, as Excel has it, and the pieces of it, which take 1 us a number."""
_PIECE = re.compile(
    r"""(?P<quoted>"[^"]*"?) | \\(?P<escaped>.) | _(?P<space>.) | \*(?P<fill>.)
    | \[(?P<bracket>[^\]]*)\] | (?P<general>General) | (?P<half>AM/PM|A/P)
    | (?P<exponent>E[+-]) | (?P<date>y+|m+|d+|h+|s+|e+) | (?P<digit>[0#?]) | (?P<other>.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_SECTIONS = re.compile(r'(?:(?<=;)|\A)(?:"[^"]*"?|\\.|\[[^\]]*\]|[^;"])*', re.DOTALL)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[\d.]+(?:E[+-]?\d+)?)")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": float.__lt__,
    ">": float.__gt__,
    "<=": float.__le__,
    ">=": float.__ge__,
    "=": float.__eq__,
    "<>": float.__ne__,
}
_ELAPSED = re.compile(r"(?i)h+|m+|s+")
_SYSTEM_DATE, _SYSTEM_TIME = "-f800", "-f400"
_GERMAN = ("407", "807", "c07", "1007", "1407")
"""Language ids in a format: German of Germany, Switzerland, Austria, Luxembourg, Liechtenstein."""
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
_QUICK = re.compile(r"\|*(?P<number>(?:(?P<comma>#,##)|#*)0(?:\.(?P<decimals>0+))?)\|*%?\|*")
_UP = 1 + 2**-51
_SCALE = re.compile(r"(?<=[0#?]),+(?=[^0#?,]*$)")
"""Commas behind the last digit: thousands that are not shown."""
_MAX_DIGITS = 100  # of a number, as 1E+300 in the format 0


class _Piece(NamedTuple):
    kind: str
    text: str


class _Section(NamedTuple):
    pieces: tuple[_Piece, ...]
    condition: tuple[str, float] | None
    is_date: bool
    german: bool


def shown(value: float, code: str, *, since_1904: bool = False) -> str:
    """ "" where the format shows nothing, or is not known."""
    return formatter(code, since_1904=since_1904)(value)


@lru_cache(maxsize=1_024)
def formatter(code: str, *, since_1904: bool = False) -> Callable[[float], str]:
    """A function that shows numbers in this format, for many cells."""
    sections = tuple(map(_parsed, _SECTIONS.findall(code[:_MAX_CODE])[:3]))
    too_long = any(len(one.pieces) > _MAX_PIECES for one in sections)
    quick = tuple(_quick_date(one, since_1904) or _quick_number(one) for one in sections)

    def show(value: float) -> str:
        if too_long or not abs(value) < 1e300:
            return ""
        number, absolute = _section_for(value, sections)
        if number is None:
            return ""
        value = abs(value) if absolute else value
        try:
            if (fast := quick[number]) is not None:
                return fast(value)
            section = sections[number]
            if section.is_date:
                return _date(value, section, since_1904=since_1904)
            return _number(value, section.pieces)
        except (InvalidOperation, OverflowError, ZeroDivisionError):
            return ""

    return show


def _quick_number(section: _Section) -> Callable[[float], str] | None:
    """For ``#,##0.00`` with words around it: 1 us in place of 30."""
    text = "".join(p.text if p.kind in ("digit", "other") else "|" for p in section.pieces)
    found = _QUICK.fullmatch(text)
    if found is None or section.is_date:
        return None
    comma, decimals = "," if found["comma"] else "", len(found["decimals"] or "")
    scale = 100 if "%" in text else 1
    first, last = found.span("number")
    before, after = (
        "".join(piece.text for piece in pieces)
        for pieces in (section.pieces[:first], section.pieces[last:])
    )

    def show(value: float) -> str:
        # a half is rounded up, also one that no float has
        number = format(abs(value) * scale * _UP, f"{comma}.{decimals}f")
        if len(number) > _MAX_DIGITS:
            return ""
        sign = "-" if value < 0 and number.strip("0.,") else ""
        return sign + (before + number + after).strip()

    return show


def _quick_date(section: _Section, since_1904: bool) -> Callable[[float], str] | None:
    """For dates and times in digits."""
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


def _parsed(section: str) -> _Section:
    pieces, condition, german = list[_Piece](), None, False
    for match in _PIECE.finditer(section):
        kind, text = match.lastgroup or "", match[match.lastgroup or 0]
        if kind == "bracket":
            if found := _CONDITION.fullmatch(text.strip()):
                condition = found[1], float(found[2])
            elif _ELAPSED.fullmatch(text):
                pieces.append(_Piece("elapsed", text.lower()))
            elif text.startswith("$"):
                symbol, _, language = text[1:].partition("-")
                german |= language.lower().lstrip("0") in _GERMAN
                pieces.append(_Piece("literal", symbol))
                if f"-{language.lower()}" == _SYSTEM_DATE:
                    return _parsed("dddd, mmmm d, yyyy dd.mm.yyyy")
                if f"-{language.lower()}" == _SYSTEM_TIME:
                    return _parsed("h:mm:ss AM/PM h:mm:ss")
        elif kind in ("quoted", "escaped", "space"):
            literal = {"quoted": text.strip('"'), "escaped": text, "space": " "}[kind]
            pieces.append(_Piece("literal", literal))
        elif kind != "fill":
            pieces.append(_Piece(kind, text.lower() if kind == "date" else text))
    is_date = any(piece.kind in ("date", "elapsed", "half") for piece in pieces)
    return _Section(tuple(pieces), condition, is_date, german)


def _section_for(value: float, sections: tuple[_Section, ...]) -> tuple[int | None, bool]:
    """The number of the section, and whether that shows the sign itself."""
    if len(sections) == 1 and sections[0].condition is None:
        return 0, False
    if any(section.condition for section in sections):
        for number, section in enumerate(sections):
            if section.condition is None or _COMPARE[section.condition[0]](
                float(value), section.condition[1]
            ):
                return number, number > 0 and value < 0
        return None, False
    if value < 0 and len(sections) > 1:
        return 1, True
    if value == 0 and len(sections) > 2:
        return 2, False
    return (0 if sections else None), False


# Dates


def _date(value: float, section: _Section, *, since_1904: bool) -> str:
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


def _fraction_digits(pieces: tuple[_Piece, ...]) -> int:
    """Digits behind the point of seconds."""
    text = "".join(
        piece.text[0] if piece.kind in ("date", "elapsed", "digit", "other") else "|"
        for piece in pieces
    )
    found = re.search(r"s\.(0{1,6})", text)
    return len(found[1]) if found else 0


def _date_pieces(
    pieces: tuple[_Piece, ...], moment: datetime, seconds: float, *, german: bool
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


# Numbers


def _number(value: float, pieces: tuple[_Piece, ...]) -> str:
    if _Piece("other", "@") in pieces:
        return ""
    if not any(piece.kind in ("digit", "general") for piece in pieces):
        return "".join(p.text for p in pieces if p.kind in ("literal", "other")).strip()
    number = Decimal(repr(float(value)))
    text = "".join(p.text if p.kind in ("digit", "other", "exponent") else "|" for p in pieces)
    number *= Decimal(100) ** text.count("%")
    if re.search(r"[0#?]\s*/|/\s*[0#?]", text):
        return _fraction(value, pieces)
    before, _, behind_point = text.partition(".")
    scale = sum(len(found) for part in (before, behind_point) for found in _SCALE.findall(part))
    number = number.scaleb(-3 * scale)
    grouped = re.search(r"[0#?],+[0#?]", before) is not None
    exponent, power = next((at for at, p in enumerate(pieces) if p.kind == "exponent"), None), 0
    digits = [at for at, p in enumerate(pieces) if p.kind == "digit"]
    point = next((at for at, p in enumerate(pieces) if p == _Piece("other", ".")), len(pieces))
    ends = len(pieces) if exponent is None else exponent
    whole = [at for at in digits if at < min(point, ends)]
    decimals = [at for at in digits if point < at < ends]
    if exponent is not None and number:
        power = number.adjusted() - max(len(whole) - 1, 0)
        number = number.scaleb(-power)
    number = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    plain = f"{abs(number):f}"
    if len(plain) > _MAX_DIGITS:
        return ""
    left, _, right = plain.partition(".")
    filled = _whole(left, whole, pieces, grouped=grouped) | _decimals(right, decimals, pieces)
    if exponent is not None:
        behind = [at for at in digits if at > exponent]
        sign = "-" if power < 0 else pieces[exponent].text[1].strip("-")
        filled[exponent] = f"E{sign}{str(abs(power)).zfill(len(behind))}"
        filled |= dict.fromkeys(behind, "")
    out = []
    for at, (kind, said) in enumerate(pieces):
        if kind == "general":
            out.append(f"{abs(value):.10g}")
        elif kind == "other" and said == ",":
            continue
        else:
            out.append(filled.get(at, said) if kind != "digit" else filled[at])
    return ("-" if number < 0 else "") + "".join(out).strip()


def _whole(
    left: str, places: list[int], pieces: tuple[_Piece, ...], *, grouped: bool
) -> dict[int, str]:
    """The digits before the point by the places of the format, from the right; the first place has
    all that are left."""
    left = left.lstrip("0")
    filled: dict[int, str] = {}
    number = 0
    for at in reversed(places):
        here = left[-1:] or {"0": "0", "?": " "}.get(pieces[at].text, "")
        left = left[:-1]
        if at == places[0]:
            here, left = left + here, ""
        if grouped and here.strip():
            for digit in reversed(here):
                comma = "," if number and number % 3 == 0 else ""
                filled[at] = digit + comma + filled.get(at, "")
                number += 1
        else:
            filled[at] = here
    return filled


def _decimals(right: str, places: list[int], pieces: tuple[_Piece, ...]) -> dict[int, str]:
    filled, kept = {}, False
    for at, digit in reversed(list(zip(places, right, strict=False))):
        kept = kept or digit != "0" or pieces[at].text == "0"
        filled[at] = digit if kept else " " if pieces[at].text == "?" else ""
    return filled


def _fraction(value: float, pieces: tuple[_Piece, ...]) -> str:
    """``# ?/?``: a whole number, and a fraction with one digit for each place."""
    text = "".join(piece.text for piece in pieces if piece.kind in ("digit", "other"))
    found = re.fullmatch(r"(?:([0#?]+)\s+)?[0#?]+\s*/\s*(\d{2,}|[1-9]|[0#?]+)", text.strip())
    if found is None:
        return ""
    whole, below = found[1], found[2]
    number = abs(Fraction(value))
    left = int(number) if whole else 0
    if below.isdigit() and int(below):
        over, under = round((number - left) * int(below)), int(below)
    else:
        near = (number - left).limit_denominator(10 ** min(len(below), 6) - 1)
        over, under = near.numerator, near.denominator
    parts = [str(left)] if whole and (left or not over) else []
    parts += [f"{over}/{under}"] if over or not whole else []
    return ("-" if value < 0 else "") + " ".join(parts)
