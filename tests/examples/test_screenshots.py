"""examples/screenshots.py makes a picture of a page at four widths, light and dark."""

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
    assert sorted(pictures) == sorted(
        f"host-{width}-{colours}.webp"
        for width in (320, 768, 1280, 2560)
        for colours in ("dark", "light")
    )
    assert all(picture[8:12] == b"WEBP" for picture in pictures.values())
    assert len(set(pictures.values())) == 8
