"""larmspider/learned/learning.py: the Parts of a crawl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from larmspider.frontier.part import HostNotes, NotesMemory
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import HOST_NOTES
from larmspider.learned.factory import build_frontier
from larmspider.learned.learning import LearningFrontier

ALL = [
    "Part",  # nothing signs in
    "ViewWatch", "ErrorPages", "DeleteGate", "Sources", "Merger", "TrapWatch", "Revisiting",
    "ScriptWatch", "Shortfall",
]  # fmt: skip
OF_ONE_RUN = {"visits", "probes", "sessions"}
"""Notes of values that count in one run only."""
SHARED_KEYS = 30
"""CPython 3.11 keeps the attributes of an instance in shared keys up to this number: with one more
the frontier takes 10% longer."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings()
    settings.setmodule("larmspider.settings")
    settings.set("LARM_DIR", str(tmp_path))
    settings.set("REDIS_URL", "")
    return settings


def built(settings: Settings, path: Path) -> LearningFrontier:
    frontier = build_frontier(settings, path)
    assert isinstance(frontier.backend, LmdbBackend)
    frontier.backend.close()
    return frontier


def test_the_parts_of_a_crawl_have_one_order(settings: Settings, tmp_path: Path) -> None:
    frontier = built(settings, tmp_path / "frontier")
    assert [type(part).__name__ for part in frontier.parts.all] == ALL
    assert len(vars(frontier)) <= SHARED_KEYS


def test_what_settings_turn_off_is_no_part(settings: Settings, tmp_path: Path) -> None:
    settings.set("LARM_SITEMAPS", False)
    frontier = built(settings, tmp_path / "frontier")
    names = [type(part).__name__ for part in frontier.parts.all]
    assert names == [name for name in ALL if name != "Sources"]
    assert not frontier.sources.is_on


def test_what_is_known_of_a_host_moves_with_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many workers, the notes of each Part; not the notes of a single run."""
    names, add = list[str](), NotesMemory.add

    def noted(memory: NotesMemory, kind: HostNotes[Any]) -> None:
        names.append(kind.name)
        add(memory, kind)

    monkeypatch.setattr(NotesMemory, "add", noted)
    built(settings, tmp_path / "frontier")
    moving = {prefix[1:].decode().strip() for prefix in HOST_NOTES}
    assert set(names) - moving == OF_ONE_RUN
    assert "robots" in moving
