"""Builds what a scrapyd node needs into a folder: larmspider.egg and requirements.txt.

    python deploy/build_egg.py dist

The egg holds the package with its data and no dependencies; requirements.txt names these. Nothing
else is left behind: what setuptools writes besides goes into a temporary folder.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_FOR_NODES = ("core-test", "test", "dev", "bench")
"""Extras of pyproject.toml; the others are for nodes too."""


def main() -> int:
    """0, or 1 with what setuptools said."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist"))
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="egg-") as temporary:
        built = _build(Path(temporary))
        if isinstance(built, str):
            print(f"The egg cannot be built:\n{built}", file=sys.stderr)
            return 1
        shutil.copyfile(built, folder / "larmspider.egg")
    lines = requirements(folder / "larmspider.egg")
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    print(f"{folder / 'larmspider.egg'} and {folder / 'requirements.txt'} are written")
    return 0


def _build(work: Path) -> Path | str:
    """The egg, or what went wrong."""
    for folder in ("info", "out"):
        (work / folder).mkdir()
    done = subprocess.run(
        [
            sys.executable, "-W", "ignore", "setup.py", "--quiet",
            "egg_info", "--egg-base", str(work / "info"),
            "bdist_egg", "--bdist-dir", str(work / "bdist"), "--dist-dir", str(work / "out"),
            "build", "--build-base", str(work / "build"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    eggs = list((work / "out").glob("*.egg"))
    return eggs[0] if done.returncode == 0 and eggs else done.stdout + done.stderr


def requirements(egg: Path) -> list[str]:
    """The dependencies that an egg names, and those of its extras for nodes."""
    with zipfile.ZipFile(egg) as archive:
        text = archive.read("EGG-INFO/requires.txt").decode("utf-8")
    lines, extra, marker = [], "", ""
    for line in text.splitlines():
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
        elif line and extra not in NOT_FOR_NODES and not line.startswith("larmspider"):
            lines.append(f"{line}; {marker}" if marker else line)
    return lines


if __name__ == "__main__":
    sys.exit(main())
