"""Codes of spreadsheets: number formats in pieces (ECMA-376-1 18.8.31), for number_formats.py to
fill, and codes in headers and footers.

    parsed("[$-407]d. mmmm").pieces         # date "d", other ".", other " ", date "mmmm"
    header_text('&L&"Arial"Draft&CPage &P')   # "Draft Page"

A format has up to four sections; the fourth, for text, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_PIECE = re.compile(
    r"""(?P<quoted>"[^"]*"?) | \\(?P<escaped>.) | _(?P<space>.) | \*(?P<fill>.)
    | \[(?P<bracket>[^\]]*)\] | (?P<general>General) | (?P<half>AM/PM|A/P)
    | (?P<exponent>E[+-]) | (?P<date>y+|m+|d+|h+|s+|e+) | (?P<digit>[0#?]) | (?P<other>.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
SECTIONS = re.compile(r'(?:(?<=;)|\A)(?:"[^"]*"?|\\.|\[[^\]]*\]|[^;"])*', re.DOTALL)
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

_HEADER_CODE = re.compile(r'&("[^"]*"?|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d+|.)', re.DOTALL)


class Piece(NamedTuple):
    kind: str
    text: str


class Section(NamedTuple):
    pieces: tuple[Piece, ...]
    condition: tuple[str, float] | None
    is_date: bool
    german: bool


def parsed(section: str) -> Section:
    pieces, condition, german = list[Piece](), None, False
    for match in _PIECE.finditer(section):
        kind, text = match.lastgroup or "", match[match.lastgroup or 0]
        if kind == "bracket":
            if found := _CONDITION.fullmatch(text.strip()):
                condition = found[1], float(found[2])
            elif _ELAPSED.fullmatch(text):
                pieces.append(Piece("elapsed", text.lower()))
            elif text.startswith("$"):
                symbol, _, language = text[1:].partition("-")
                german |= language.lower().lstrip("0") in _GERMAN
                pieces.append(Piece("literal", symbol))
                if f"-{language.lower()}" == _SYSTEM_DATE:
                    return parsed("dddd, mmmm d, yyyy dd.mm.yyyy")
                if f"-{language.lower()}" == _SYSTEM_TIME:
                    return parsed("h:mm:ss AM/PM h:mm:ss")
        elif kind in ("quoted", "escaped", "space"):
            literal = {"quoted": text.strip('"'), "escaped": text, "space": " "}[kind]
            pieces.append(Piece("literal", literal))
        elif kind != "fill":
            pieces.append(Piece(kind, text.lower() if kind == "date" else text))
    is_date = any(piece.kind in ("date", "elapsed", "half") for piece in pieces)
    return Section(tuple(pieces), condition, is_date, german)


def header_text(codes: str) -> str:
    """The text of a header or footer, without fonts and fields, its sections separated (ECMA-376-1
    18.3.1.46, MS-XLS 2.4.136)."""
    return _HEADER_CODE.sub(_header_code, codes).strip()


def _header_code(found: re.Match[str]) -> str:
    return {"&": "&", "L": " ", "C": " ", "R": " "}.get(found[1].upper(), "")


def section_for(value: float, sections: tuple[Section, ...]) -> tuple[int | None, bool]:
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
