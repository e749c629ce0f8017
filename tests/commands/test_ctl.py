"""The answers of a server as larmspider ctl prints them."""

from __future__ import annotations

from typing import Any

import pytest

from larmspider.commands.ctl import _text

ROWS = [
    {"name": "wiki", "seeds": ["http://a/", "http://b/"], "problem": "", "next_run": 1764528000.5},
    {"name": "human-resources", "seeds": [], "problem": "", "next_run": 0.0},
]


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ({"done": "wiki starts"}, ["wiki starts"]),
        ({"changes": [], "pages": 0}, ["nothing"]),
        (
            {"crawls": ROWS, "queue": ["a", "b"], "parallel": 2},
            [
                "name             seeds                 next_run",
                "wiki             http://a/, http://b/  2025-11-30T18:40",
                "human-resources",
                "queue        a, b",
                "parallel     2",
            ],
        ),
        (
            {"summary": {"name": "wiki"}, "file": "seeds = []\n# mine\n", "crawl": {"host": {}}},
            ["name         wiki", "file:", "    seeds = []", "    # mine"],
        ),
    ],
)
def test_an_answer_is_printed(answer: dict[str, Any], lines: list[str]) -> None:
    """A value a line, a table for rows, the lines of a text below its name."""
    assert _text(answer) == lines
