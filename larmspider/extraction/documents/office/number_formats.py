"""A number as a spreadsheet shows it, by the format code of its cell (ECMA-376-1 18.8.30, 18.8.31).

    shown(45357, "dd.mm.yyyy")          # "06.03.2024"
    shown(47115, "00000000")            # "00047115"
    shown(0.195, "0.0%")                # "19.5%"

A program that opens the file writes dates and decimals in its own country's format, which no file
names: decimals have a point here, format 14 is 06.03.2024 and 3/6/2024. Names of days and months
are English or German. Not supported: eras, other calendars, other digits, and formats of text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

from larmspider.extraction.documents.office.date_formats import quick_date, shown_date
from larmspider.extraction.documents.office.format_codes import (
    SECTIONS,
    Piece,
    Section,
    parsed,
    section_for,
)

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
_QUICK = re.compile(r"\|*(?P<number>(?:(?P<comma>#,##)|#*)0(?:\.(?P<decimals>0+))?)\|*%?\|*")
_UP = 1 + 2**-51
_SCALE = re.compile(r"(?<=[0#?]),+(?=[^0#?,]*$)")
"""Commas after the last digit: the number is shown in thousands."""
_MAX_DIGITS = 100  # digits of a number, such as 1E+300 in the format 0


def shown(value: float, code: str, *, since_1904: bool = False) -> str:
    """ "" if the format shows nothing, or is not known."""
    return formatter(code, since_1904=since_1904)(value)


@lru_cache(maxsize=1_024)
def formatter(code: str, *, since_1904: bool = False) -> Callable[[float], str]:
    """A function that shows numbers in this format, for many cells."""
    sections = tuple(map(parsed, SECTIONS.findall(code[:_MAX_CODE])[:3]))
    too_long = any(len(one.pieces) > _MAX_PIECES for one in sections)
    quick = tuple(quick_date(one, since_1904) or _quick_number(one) for one in sections)

    def show(value: float) -> str:
        if too_long or not abs(value) < 1e300:
            return ""
        number, absolute = section_for(value, sections)
        if number is None:
            return ""
        value = abs(value) if absolute else value
        try:
            if (fast := quick[number]) is not None:
                return fast(value)
            section = sections[number]
            if section.is_date:
                return shown_date(value, section, since_1904=since_1904)
            return _number(value, section.pieces)
        except (InvalidOperation, OverflowError, ZeroDivisionError):
            return ""

    return show


def _quick_number(section: Section) -> Callable[[float], str] | None:
    """A quick function for formats such as ``#,##0.00`` with words around: 1 us in place of 30."""
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
        # a half is rounded up, even if no float equals it
        number = format(abs(value) * scale * _UP, f"{comma}.{decimals}f")
        if len(number) > _MAX_DIGITS:
            return ""
        sign = "-" if value < 0 and number.strip("0.,") else ""
        return sign + (before + number + after).strip()

    return show


def _number(value: float, pieces: tuple[Piece, ...]) -> str:
    if Piece("other", "@") in pieces:
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
    point = next((at for at, p in enumerate(pieces) if p == Piece("other", ".")), len(pieces))
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
    left: str, places: list[int], pieces: tuple[Piece, ...], *, grouped: bool
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


def _decimals(right: str, places: list[int], pieces: tuple[Piece, ...]) -> dict[int, str]:
    filled, kept = {}, False
    for at, digit in reversed(list(zip(places, right, strict=False))):
        kept = kept or digit != "0" or pieces[at].text == "0"
        filled[at] = digit if kept else " " if pieces[at].text == "?" else ""
    return filled


def _fraction(value: float, pieces: tuple[Piece, ...]) -> str:
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
