"""A spreadsheet takes no cell from the web for a formula."""

from __future__ import annotations

import csv
import io

import pytest

from larmspider.reports.links import defused, to_csv


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "'=1", '"=1', "＝1", "\xa0@x"],
)
def test_what_may_begin_a_formula_gets_an_apostrophe(cell: str) -> None:
    """OWASP's list, and what a spreadsheet strips before it looks."""
    assert defused(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["a=b", "http://h/?a=-1", "", "Über uns", "1 - 2"])
def test_other_text_stays(cell: str) -> None:
    """As do numbers."""
    assert defused(cell) == cell
    assert defused(-3) == "-3"


def test_quotes_and_commas_survive() -> None:
    """RFC 4180."""
    text = to_csv(("a", "b"), [('say "x", y', 3), ("two\nlines", -1)])
    assert list(csv.reader(io.StringIO(text))) == [
        ["a", "b"], ['say "x", y', "3"], ["two\nlines", "-1"]
    ]  # fmt: skip
