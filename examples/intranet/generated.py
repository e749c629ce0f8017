"""Pages without a file: the endless calendar, the relative-link trap, directory indexes, the PDF.

    /calendar/2026-11/          links to /calendar/2026-12/, and so on for ever
    /manual/parts/list/         links to parts/list/ below itself
    /files/?C=N;O=D             the same directory, sorted the other way

Each is a function from path, query or date to a page's bytes.
"""

from __future__ import annotations

import re
from calendar import month_name
from collections.abc import Sequence
from datetime import date
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qs

from examples.intranet.pdf import one_page_pdf

_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_YEARS = range(1000, 9990)

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


class DirectoryEntry(NamedTuple):
    """One line of a directory index: size in bytes, modification time as Apache writes it."""

    name: str
    size: int
    modified: str


def page(title: str, body: str) -> bytes:
    """A page of HTML in UTF-8; ``body`` is HTML, ``title`` text."""
    return _PAGE.format(title=escape(title), body=body).encode()


def month_after(month: date, months: int) -> date:
    """The first day of the month ``months`` later, or earlier where it is negative."""
    index = month.year * 12 + month.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def calendar_month(path: str, query: str) -> date | None:
    """The month that /calendar/2026-11/ or /calendar/?month=2026-11 names, None where none."""
    text = parse_qs(query).get("month", [""])[0] if path == "/calendar/" else path.split("/")[2]
    found = _MONTH.fullmatch(text)
    if (
        not found
        or int(found[1]) not in _YEARS
        or path.count("/") != (2 if path == "/calendar/" else 3)
    ):
        return None
    return date(int(found[1]), int(found[2]), 1)


def calendar_page(month: date) -> bytes:
    """One month: it knows the next one, and the same one in two years, whatever month it is."""
    following, later = month_after(month, 1), month_after(month, 24)
    body = f"""\
<p>First Saturday: siren test, eleven o'clock. First Monday: the coffee machine is descaled.</p>
<p><a href="/calendar/{following:%Y-%m}/">Next month</a> |
<a href="/calendar/?month={later:%Y-%m}">The same month in two years</a></p>"""
    return page(f"Calendar: {month_name[month.month]} {month.year}", body)


def manual_page(path: str) -> bytes | None:
    """A page of the spare-parts manual, whose relative link should have been ../../parts/list/."""
    if not re.fullmatch(r"/manual(?:/parts/list)+/", path):
        return None
    body = """\
<p>Bearing 6204, two pieces. Brush, carbon, four pieces. Grease nipple, one.</p>
<p><a href="parts/list/">List of parts</a> | <a href="/">Home</a></p>"""
    return page("Spare parts", body)


def data_sheet() -> bytes:
    """/files/siren-h4.pdf"""
    return one_page_pdf(
        "Siren H4",
        [
            "Power 4 kW, sound 118 dB at 30 m, weight 96 kg.",
            "Twelve ports, 2100 turns a minute, 420 Hz.",
            "The hoarfrost kit (heated rotor) is delivered for roofs above 600 m.",
        ],
    )


def directory_index(
    path: str, query: str, entries: Sequence[DirectoryEntry], separator: str
) -> bytes:
    """A directory as Apache shows it: ?C=N;O=D sorts by name downwards (also M: time, S: size).

    ``separator`` stands between the two parameters, ";" as Apache writes it now or "&" as it did.
    """
    order = dict(part.split("=", 1) for part in re.split("[;&]", query) if "=" in part)
    column, downwards = order.get("C", "N"), order.get("O", "A") == "D"
    key = {"M": 2, "S": 1}.get(column, 0)
    ordered = sorted(entries, key=lambda entry: entry[key], reverse=downwards)
    heads = "".join(
        f'<th><a href="?C={letter}{escape(separator)}O='
        f'{"D" if letter == column and not downwards else "A"}">{name}</a></th>'
        for letter, name in (("N", "Name"), ("M", "Last modified"), ("S", "Size"))
    )
    rows = "".join(
        f'<tr><td><a href="{escape(entry.name)}">{escape(entry.name)}</a></td>'
        f"<td>{entry.modified}</td><td>{entry.size}</td></tr>\n"
        for entry in ordered
    )
    parent = path.rstrip("/").rpartition("/")[0] + "/"
    body = f"""\
<table>
<tr>{heads}</tr>
<tr><td><a href="{parent}">Parent Directory</a></td><td></td><td></td></tr>
{rows}</table>"""
    return page(f"Index of {path.rstrip('/')}", body)
