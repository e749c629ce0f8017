"""The state of a crawl directory: running, ended, killed, or empty.

>>> RunState.of(Path("crawl")).sentence
'Finished at 2026-01-31T12:00:00Z.'
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from larmspider.crawl.reader import read_manifest
from larmspider.errors import CrawlDirError
from larmspider.files import is_locked
from larmspider.formatting import counted, utc
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.manifest import LOCK, MANIFEST, is_shared
from larmspider.workdir.manifest_copy import read_or_copy

FINISHED = "finished"
"""How a crawl ends when nothing is left to do."""
_HOW = {FINISHED: "Finished", "shutdown": "Stopped"}


class State(StrEnum):
    NONE = "no crawl"
    EMPTY = "empty"
    RUNNING = "running"
    ENDED = "ended"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class RunState:
    """``sentence`` describes the state. ``began`` and ``ended`` are times in UTC, in the form of
    crawl.json."""

    state: State
    sentence: str
    began: str = ""
    ended: str = ""
    reason: str = ""

    @classmethod
    def of(cls, path: Path) -> Self:
        """Looks at crawl.json and at whether a crawl holds the lock."""
        try:
            return cls._of(path)
        except PermissionError as error:
            return cls(State.NONE, f"{error.filename} cannot be read: {error.strerror}.")

    @classmethod
    def _of(cls, path: Path) -> Self:
        if not path.is_dir():
            return cls(State.NONE, f"{path} is not a directory.")
        if not (path / MANIFEST).exists() and not read_or_copy(path).copied:
            if any(entry.name != LOCK for entry in path.iterdir()):
                return cls(State.NONE, f"{path} is not a crawl's directory: it has no crawl.json.")
            return cls(State.EMPTY, f"{path} is empty: no crawl has written here yet.")
        try:
            manifest = read_manifest(path)
        except CrawlDirError as error:
            return cls(State.NONE, str(error))
        if is_shared(manifest):
            return cls._of_workers(worker_dirs(path))
        began, ended = str(manifest.get("began") or ""), str(manifest.get("ended") or "")
        reason = str(manifest.get("end") or "")
        if is_locked(path / LOCK):
            return cls(State.RUNNING, f"Running since {began}.", began)
        if reason:
            how = _HOW.get(reason) or f"Ended ({reason})"
            sentence = f"{how} at {ended}."
            return cls(State.ENDED, sentence, began, ended, reason)
        sentence = (
            f"This crawl, begun at {began}, was killed: no process runs it, and it did not record"
            " how it ended. Start it again to continue from its last checkpoint."
        )
        return cls(State.KILLED, sentence, began)

    @classmethod
    def _of_workers(cls, directories: list[Path]) -> Self:
        """A killed worker does not keep the others from finishing: they fetch its remaining
        URLs."""
        found = [cls.of(directory) for directory in directories]
        began = min((one.began for one in found), default="")
        running = sum(one.state is State.RUNNING for one in found)
        if running:
            killed = sum(one.state is State.KILLED for one in found)
            more = f", {killed:,} {_were(killed)} killed" if killed else ""
            run = "runs" if running == 1 else "run"
            whole = counted(len(found), "worker")
            sentence = f"{running:,} of {whole} here {run}{more}; it began at {began}."
            return cls(State.RUNNING, sentence, began)
        died = [path for path, one in zip(directories, found, strict=True) if not one.reason]
        killed = len(died)
        last = max(found, key=lambda one: one.ended, default=None)
        if last is None or (
            killed
            and (last.reason != FINISHED or any(_began_after(path, last.ended) for path in died))
        ):
            sentence = (
                f"No worker runs this crawl here, and {killed:,} of {len(found):,} {_were(killed)}"
                " killed. Start it again to continue from their last checkpoints."
            )
            return cls(State.KILLED, sentence, began)
        ended = len(found) - killed
        sentence = (
            f"{counted(ended, 'worker')} ended this crawl here ({last.reason}) at {last.ended}."
        )
        if killed:
            whom = "this one" if killed == 1 else "these"
            sentence += f" {killed:,} more {_were(killed)} killed before; the others did what"
            sentence += f" {whom} left."
        return cls(State.ENDED, sentence, began, last.ended, last.reason)


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _began_after(worker: Path, ended: str) -> bool:
    """Whether a worker's last run began later; crawl.json is written when one begins."""
    with suppress(OSError):
        return utc((worker / MANIFEST).stat().st_mtime)[:19] > ended[:19]
    return False
