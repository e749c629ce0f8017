"""Numbers with units, for people."""

from __future__ import annotations

import json
from math import inf

import pytest

from larmspider.formatting import counted, defused, duration, json_escaped, legible, rate, size
from larmspider.web.render import above, curve, href, outward, times, when


@pytest.mark.parametrize("seconds, text", [
    (0, "0 s"), (0.04, "0.04 s"), (0.5, "0.5 s"), (1, "1 s"), (2.25, "2.25 s"), (59.4, "59 s"),
    (60, "1 min 00 s"), (245, "4 min 05 s"), (3599.6, "1 h 00 min"), (7500, "2 h 05 min"),
    (86_399, "23 h 59 min"), (86_400, "1 d 00 h"), (273_600, "3 d 04 h"), (inf, "never"),
    (-3, "0 s"),
])  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("number, text", [
    (0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (32_500, "32.5 kB"),
    (999_999, "1.0 MB"), (1.2e9, "1.2 GB"), (5e18, "5,000.0 PB"),
])  # fmt: skip
def test_sizes(number: float, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize("number, text", [
    (0, "0.00"), (0.05, "0.05"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (1234, "1,234"),
])  # fmt: skip
def test_rates(number: float, text: str) -> None:
    assert rate(number) == text


def test_curves_are_paths() -> None:
    """From 0 to a round number above the highest; of one point a level line."""
    drawn = curve([0.0, 1.0, 2.0], [0.0, 5.0, 2.5])
    assert (drawn.path, drawn.top) == ("M0,100L300,0L600,50", 5.0)
    assert drawn.area == "M0,100L300,0L600,50L600,100L0,100Z"
    assert curve([9.0], [3.0]).path == "M0,0L600,0"
    assert curve([], []).path == ""
    assert [above(n) for n in (0, 0.011, 7, 8.5, 12, 999)] == [1, 0.02, 8, 10, 20, 1000]


def test_links_hold_what_they_are_given() -> None:
    """Quoted whole; nothing that would run is a link outward."""
    assert href("/url", u="http://h/?a=b&c d", page=None, q="") == (
        "/url?u=http%3A%2F%2Fh%2F%3Fa%3Db%26c%20d"
    )
    assert href("/hosts/a:80\"'<") == "/hosts/a%3A80%22%27%3C"
    assert outward("HTTP://h/") == "HTTP://h/"
    assert outward("javascript:alert(1)") == outward(" http://h/") == ""
    assert (when(0), when(inf), when(1_774_958_400)) == ("", "", "2026-03-31 12:00:00")


def test_one_is_no_plural() -> None:
    assert [counted(n, "host") for n in (0, 1, 1_000)] == ["0 hosts", "1 host", "1,000 hosts"]
    assert [counted(n, "fetch", "fetches") for n in (1, 2)] == ["1 fetch", "2 fetches"]


def test_times_of_the_logs_are_shown_as_all_others() -> None:
    """Also in the middle of a sentence."""
    assert times("at 2026-01-31T12:00:00.123Z.") == "at 2026-01-31 12:00:00."
    assert times("from 2026-01-31T12:00:00Z on") == "from 2026-01-31 12:00:00 on"
    assert times("HTTP status 200T") == "HTTP status 200T"


def test_json_shows_what_it_holds() -> None:
    """Invisible characters and controls are escapes, and mean themselves when it is read."""
    text = "a\u202eb\u200d\x9b31m\x7f\u2028\U000e0041 \N{SNOWMAN} \\u202e \ufeff"
    written = json_escaped(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert {char for char in written if not char.isascii()} == {"\N{SNOWMAN}"}


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


@pytest.mark.parametrize("text, shown", [
    ("Donau\u00addampf", "Donau\u00addampf"),
    ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
    ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467"),
    ("a\u200bb\ufeff", "ab"), ("\u200b\u2060", ""), ("\u200d\u00ad", ""), ("", ""),
    ("\u202egnp.exe", "\ufffdgnp.exe"), ("\x1b[31m\x00", "\ufffd[31m\ufffd"),
])  # fmt: skip
def test_pages_keep_what_joins_letters_and_nothing_that_turns_or_hides(
    text: str, shown: str
) -> None:
    """A title of nothing that can be seen is empty, so that its URL stands for it."""
    assert legible(text) == shown
