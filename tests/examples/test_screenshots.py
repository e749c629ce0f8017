"""examples/screenshots.py makes a picture of a page at both widths, light and dark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT
from tests.support.web.browser import Browser


@pytest.mark.acceptance
def test_pictures_of_a_host(tmp_path: Path) -> None:
    with Browser():  # skips the test where there is no Chromium
        pass
    command = [sys.executable, "examples/screenshots.py", "--to", str(tmp_path), "--only", "host"]
    subprocess.run(command, cwd=PROJECT, timeout=300, check=True)
    pictures = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(pictures) == [
        f"host-{width}-{colours}.png" for width in (1280, 390) for colours in ("dark", "light")
    ]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())
    assert len(set(pictures.values())) == 4
