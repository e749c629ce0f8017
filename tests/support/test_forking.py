"""tests/support/forking.py: a fork is a process of its own, and ends when its time is over."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.crawling import begin, scrapy

SLEEPS = """
import os, time
from pathlib import Path
Path("pid").write_text(str(os.getpid()))
time.sleep(600)
"""


def test_each_command_has_settings_directory_and_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of one is left for the next."""
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv("WHICH", name)
        (folder / "own.py").write_text("import os\nBOT_NAME = os.environ['WHICH'] + os.getcwd()")
        ran = scrapy("settings", "--get", "BOT_NAME", cwd=folder, settings_module="own")
        assert (ran.status, ran.out) == (0, f"{name}{folder}\n"), ran.err


def test_a_command_whose_time_is_over_is_killed(tmp_path: Path) -> None:
    """It raises what subprocess.run() does; the next command is answered."""
    (tmp_path / "own.py").write_text(SLEEPS)
    with pytest.raises(subprocess.TimeoutExpired):
        scrapy("version", cwd=tmp_path, settings_module="own", timeout=3)
    process = Path("/proc") / (tmp_path / "pid").read_text()
    assert not process.exists()
    assert scrapy("version", cwd=tmp_path).status == 0


def test_a_command_beside_a_test_is_looked_at_waited_for_and_killed(tmp_path: Path) -> None:
    """As with subprocess.Popen."""
    (tmp_path / "own.py").write_text(SLEEPS)
    with (tmp_path / "said").open("w") as out:
        running = begin("version", cwd=tmp_path, out=out, settings_module="own")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.1)
    assert running.poll() is None
    running.kill()
    assert running.wait(10) == running.poll() == -signal.SIGKILL
    running.kill()  # nobody is hit
    with (tmp_path / "said").open("w") as out:
        assert begin("version", cwd=tmp_path, out=out).wait(30) == 0
    assert (tmp_path / "said").read_text().startswith("Scrapy ")
