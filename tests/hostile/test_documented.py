"""docs/hostile-web.md has each case under its heading, with its outcome."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hostile.cases import GROUPS
from tests.hostile.link_cases import NOT_ASKED

DOCS = Path(__file__).parents[2] / "docs" / "hostile-web.md"


def documented(heading: str) -> dict[str, str]:
    """Case -> outcome, of the table under a heading."""
    section = DOCS.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = {}
    for row in re.findall(r"^\| (`.*)\|$", section, re.MULTILINE):
        cells = row.split(" | ")
        for name in re.findall(r"`([^`]+)`", cells[0]):
            assert name not in found, f"{name} stands there twice"
            found[name] = cells[1]
    return found


@pytest.mark.parametrize("heading", GROUPS)
def test_each_case_has_its_row(heading: str) -> None:
    """The same names, and the outcome is one that the row names."""
    rows = documented(heading)
    cases = {case.name: case.outcome for case in GROUPS[heading]}
    assert rows.keys() == cases.keys()
    for name, outcome in cases.items():
        wanted = "not asked" if outcome == NOT_ASKED else f"`{outcome.result}`"
        assert wanted in rows[name], name
