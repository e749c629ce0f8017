"""Sites without end in a whole crawl, with its default LARM_TRAPS."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.traps import MOST, count
from tests.support.crawling import scrapy

pytestmark = pytest.mark.acceptance
NAMES = ("calendar by month", "sessions in queries", "filters")


def test_sites_without_end_are_held_and_others_lose_nothing(tmp_path: Path) -> None:
    """All thirteen: python -m benchmarks.traps."""
    found = count(tmp_path, NAMES, 3)
    assert (found.ran.status, found.missing) == (0, [])
    assert max(found.asked.values()) < MOST
    assert " URLs held, as those like them gave nothing new (LARM_TRAPS" in found.ran.out
    shown = scrapy("traps", "--json", cwd=tmp_path)
    traps = shown.json["traps"]
    assert {trap["host"].rpartition(".")[0] for trap in traps} == {"127.0.2"}
    assert all(1 <= len(trap["samples"]) <= 5 for trap in traps)
    assert any(sample["repeats"] for trap in traps for sample in trap["samples"])
