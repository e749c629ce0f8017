"""The remains of a folder after a power loss: only synced data.

    kept = SyncedOnly(tmp_path / "kept")               # SyncedOnly.unavailable: why there is none
    begin("crawl", ..., **kept.variables)              # the crawl, with synced_only.c preloaded
    ...                                                # kill it
    kept.after_power_loss(tmp_path / "real", tmp_path / "left")

A file that was never synced is empty, if its name was synced, and gone else. That is more than any
file system loses, and so more than a crawl has to survive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


@cache
def compiler() -> str | None:
    """None where this machine has none."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


class SyncedOnly:
    """``folder`` is for what is kept, on the file system of the files that are watched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for kind in ("files", "folders", "gone"):
            (folder / kind).mkdir(parents=True)
        library = folder / "synced_only.so"
        cc = compiler()
        assert cc is not None
        subprocess.run(
            [cc, "-O1", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"],
            check=True,
            capture_output=True,
        )
        self.variables = {"LD_PRELOAD": str(library), "SYNCED_ONLY": str(folder)}

    def after_power_loss(self, folder: Path, left: Path) -> None:
        """Make ``left``, which is what a power loss would have left of ``folder``."""
        left.mkdir()
        self._fill(folder.stat().st_ino, left)

    def _fill(self, inode: int, left: Path) -> None:
        names = self.folder / "folders" / str(inode)
        for line in names.read_text().splitlines() if names.exists() else ():
            number, kind, name = line.split(" ", 2)
            content = self.folder / "files" / number
            if kind == "d":
                (left / name).mkdir()
                self._fill(int(number), left / name)
            elif content.exists():
                shutil.copyfile(content, left / name)
            else:
                (left / name).touch()
        os.utime(left)
