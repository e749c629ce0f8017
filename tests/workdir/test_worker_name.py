"""larmspider/workdir/worker_name.py: who is who in LARM_DIR."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.options import larm_dir
from larmspider.workdir import worker_name
from larmspider.workdir.directory import locked


@pytest.mark.parametrize(
    ("host", "present", "expected"),
    [
        ("atlas", [], ["atlas-1", "atlas-2"]),
        ("atlas", ["atlas-3", "boreas-1", "atlas-x"], ["atlas-3", "atlas-1"]),
        ("Atlas.Example", ["atlas-2", "atlas-1"], ["atlas-1", "atlas-2"]),
        ("höst name", [], ["h-st-name-1", "h-st-name-2"]),
        ("", [], ["worker-1", "worker-2"]),
        ("x" * 64, [], [f"{'x' * 56}-1", f"{'x' * 56}-2"]),
    ],
)
def test_names_that_have_directories_come_first(
    tmp_path: Path, host: str, present: list[str], expected: list[str]
) -> None:
    """By number; then new ones. Those of other machines are theirs."""
    for name in present:
        (tmp_path / name).mkdir()
    names = list(islice(worker_name.names(tmp_path, host), 2))
    assert names == expected
    for name in names:
        worker_name.check_name(name)


def settings_for(tmp_path: Path, **more: str) -> Settings:
    return Settings({"LARM_DIR": str(tmp_path), "REDIS_URL": "redis://h/0", **more})


def test_a_worker_takes_the_first_directory_that_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on it is its own; one that is left is taken up again."""
    monkeypatch.setattr("socket.gethostname", lambda: "atlas")
    (tmp_path / "atlas-1").mkdir()
    held = locked(tmp_path / "atlas-1" / "lock")
    assert worker_name.free_names(tmp_path, 2) == ["atlas-2", "atlas-3"]
    settings = settings_for(tmp_path)
    worker_name.settle(settings)
    assert larm_dir(settings) == tmp_path / "atlas-2"
    held.close()
    again = settings_for(tmp_path)
    worker_name.settle(again)
    assert larm_dir(again) == tmp_path / "atlas-1"
    for name in ("atlas-1", "atlas-2"):
        locked(tmp_path / name / "lock").close()


def test_without_redis_there_is_one_directory(tmp_path: Path) -> None:
    """LARM_DIR, whatever LARM_WORKER says."""
    settings = Settings({"LARM_DIR": str(tmp_path), "LARM_WORKER": "w1", "REDIS_URL": ""})
    worker_name.settle(settings)
    assert larm_dir(settings) == tmp_path


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "A", "x" * 65, "redis", "rules", "ä", ".x"])
def test_names_that_are_refused(name: str) -> None:
    """What is no folder's name, or is the name of another one there."""
    with pytest.raises(ConfigError, match=r"LARM_WORKER=.*: expected"):
        worker_name.check_name(name)
