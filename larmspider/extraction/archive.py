"""How another process of ours imports this package where it lies in a zip file, such as an egg.

    with ChildPath() as path:
        subprocess.Popen([...], pass_fds=path.fds)    # sys.path[:] = path.entries

An egg may be deleted or replaced while a job still runs from it (delversion.json, addversion.json).
So the copy that a child reads is our own: an open file without a name, gone with the last process
that has it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO, Self
from zipimport import zipimporter

import larmspider


def archive() -> str | None:
    """The zip file that this package was imported from, as sys.path has it; None for a folder."""
    spec = larmspider.__spec__
    loader = spec.loader if spec is not None else None
    return loader.archive if isinstance(loader, zipimporter) else None


def origin() -> Path:
    """The folder or zip file that this package was imported from."""
    return Path(archive() or next(iter(larmspider.__path__))).absolute()


def shadowed() -> str | None:
    """The egg on sys.path that is not what runs, since this package is installed besides."""
    eggs = [entry for entry in sys.path if entry.endswith(".egg")]
    return eggs[0] if eggs and archive() is None else None


class ChildPath:
    """``entries`` for sys.path of a child, to which the files ``fds`` are passed on (POSIX)."""

    def __init__(self) -> None:
        self.entries = list(sys.path)
        self.fds: tuple[int, ...] = ()
        self._copy: IO[bytes] | None = None
        egg = archive()
        if egg is not None and Path("/dev/fd").exists():
            self._copy = tempfile.TemporaryFile(prefix="larmspider-")  # noqa: SIM115 - see close()
            with Path(egg).open("rb") as file:
                shutil.copyfileobj(file, self._copy)
            self._copy.flush()
            self.fds = (self._copy.fileno(),)
            copy = f"/dev/fd/{self.fds[0]}"
            self.entries = [copy if entry == egg else entry for entry in self.entries]

    def close(self) -> None:
        """May be called twice. A child under way keeps its file."""
        self.fds = ()
        if self._copy is not None:
            self._copy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
