"""docs/internals/deploy.md, "All of it on one machine", is run as it stands."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT

pytestmark = pytest.mark.acceptance

SHOWN = [
    r"nginx.conf syntax is ok",
    r"https://127\.34\.\d+\.1:6843/addversion\.json",
    r"https://127\.34\.\d+\.2:6843/addversion\.json",
    r'"spiders": 1, "status": "ok"',
    r'"jobid": "demo", "status": "ok"',
    r"INFO: ended       finished",
    r"INFO: stored      63 pages",
    r"^401$",
    r"^403$",
    r"^OK$",
    r"NOPERM .* access one of the keys",
    r"NOPERM .* 'flushall'",
    r"I/O error|Connection reset",
]
"""In this order."""


def commands() -> str:
    text = (PROJECT / "docs" / "internals" / "deploy.md").read_text("utf-8")
    walk = text[text.index("<!-- walk -->") : text.index("<!-- end of walk -->")]
    return textwrap.dedent(walk.partition("\n")[2])


def test_the_commands_of_the_documentation_do_what_it_says(checkout: Path, tmp_path: Path):
    """Below a folder and on addresses of this run's own, from a copy of the project."""
    script = commands()
    replaced = {
        "$PWD/.venv/bin": str(Path(sys.executable).parent),
        "W=/tmp/larm": f"W={tmp_path}",
        "127.34.0.": f"127.34.{secrets.randbelow(200) + 50}.",
    }
    for there, here in replaced.items():
        assert there in script
        script = script.replace(there, here)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (tmp_path / "output").open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=checkout,
            env=kept | {"PATH": f"{kept['PATH']}:/usr/sbin"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            status = shell.wait(240)
        finally:
            end(shell, tmp_path)
    shown = (tmp_path / "output").read_text("utf-8", "replace")
    assert status == 0, shown
    position = 0
    for line in SHOWN:
        found = re.compile(line, re.MULTILINE).search(shown, position)
        assert found is not None, f"{line} does not come: {shown}"
        position = found.end()


def end(shell: subprocess.Popen[bytes], folder: Path) -> None:
    """Whatever of it still runs; nginx has left its group."""
    try:
        os.killpg(shell.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    try:
        os.kill(int((folder / "nginx.pid").read_text()), signal.SIGTERM)
    except (OSError, ValueError):
        pass
    shell.wait(120)
