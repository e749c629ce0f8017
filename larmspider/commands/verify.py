"""scrapy verify [--repair]: compares a crawl's files with their digests, checksums and
positions."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options, program
from larmspider.command import LarmCommand, print_json, progress
from larmspider.control.offline import change
from larmspider.control.repair import make_due, repair
from larmspider.crawl.verify.check import check, check_root, parts_of
from larmspider.crawl.verify.findings import Findings
from larmspider.crawl.verify.kinds import move_away, odd_entries
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import ConfigError, LarmspiderError
from larmspider.files import is_locked, why_no_lock
from larmspider.formatting import counted, printable
from larmspider.pipelines.compaction import finish
from larmspider.workdir.directory import is_worker, locked, worker_dirs
from larmspider.workdir.frames import damages
from larmspider.workdir.manifest import LOCK, MANIFEST
from larmspider.workdir.manifest_copy import read_or_copy

if TYPE_CHECKING:
    from collections.abc import Mapping


class Command(LarmCommand):
    stopped = "stopped; the same command starts over"

    def short_desc(self) -> str:
        return "Check the stored data of a crawl, and repair damage"

    def long_desc(self) -> str:
        return (
            "Compare stored bodies with their digests, logs with their columns, checksums and"
            " positions, and the search index and the frontier with both. If damage is listed,"
            " the exit status is 1. With --repair, damaged pages become due (the next run with"
            " refresh= fetches them), indexes are rebuilt, and remaining damage is listed with the"
            " command that repairs it. No crawl may run there meanwhile."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--repair", action="store_true", help="repair damage")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}: expected --dir DIR, or none")
        root = options.larm_dir(self.settings)
        odd = self._odd(root, repairs=opts.repair)
        if odd.damages and not opts.repair:
            self._print([odd], [], opts)
            self.exitcode = 1
            return
        try:
            parts = parts_of(root)
        except LarmspiderError as error:
            raise ConfigError(str(error)) from error
        elsewhere = self._elsewhere(is_shared=parts != [root])
        for path in {root, *parts}:
            if why := _unreadable(path):
                raise ConfigError(f"{why}: nothing was checked; run this as the crawl's user")
            if opts.repair:
                _refuse_beside_crawl(path)
        every, left = [odd] * bool(odd.damages), []
        for path in parts:
            found, remains = self._one(path, root, repairs=opts.repair)
            every.append(found)
            left += remains
        if parts != [root]:
            found = check_root(root)
            from larmspider.crawl.verify.workers import check_workers  # imports Redis

            check_workers(found, parts, elsewhere, self.settings)
            every.append(found)
            if opts.repair:
                left += repair(found, self.settings, lambda *_: None, make_due=lambda _: 0)
        damages.clear()  # they are among the findings
        self._print(every, left, opts)
        damaged = any(found.damages for found in every)
        self.exitcode = int(bool(left) if opts.repair else damaged)

    def _odd(self, root: Path, *, repairs: bool) -> Findings:
        """Find entries that are not files, and should be. A repair renames them. Without one, no
        file is opened, because a pipe would keep the command waiting."""
        found = Findings(root)
        if not root.is_dir() or not any(
            os.path.lexists(root / name) for name in (MANIFEST, "frontier")
        ):
            return found  # parts_of() refuses it
        try:
            entries = [*odd_entries(root)]
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}: nothing was checked") from error
        for path, what in entries:
            found.add(path, what)
        if found.damages and not repairs:
            found.notes.append(f"{root}: nothing else was checked")
        if repairs and entries:
            for path in (root, *root.iterdir()):
                _refuse_beside_crawl(path)
            for path, _ in entries:
                found.notes.append(f"{path} was moved to {move_away(path).name}")
        return found

    def _elsewhere(self, *, is_shared: bool) -> set[str]:
        """Names of the workers whose directories --shard names; a directory of another machine need
        not be here. Raises ConfigError."""
        assert self.settings is not None
        given = [Path(one).expanduser() for one in options.strings(self.settings, "LARM_SHARDS")]
        if given and not is_shared:
            raise ConfigError(f"--shard {given[0]}: expected a crawl that workers share")
        for path in given:
            if path.exists() and not is_worker(path) and not worker_dirs(path):
                raise ConfigError(f"--shard {path}: expected a worker's directory")
        return {one.name for path in given for one in (path, *worker_dirs(path))}

    def _one(self, path: Path, root: Path, *, repairs: bool) -> tuple[Findings, list[str]]:
        assert self.settings is not None
        settings = self.settings.copy()
        manifest = read_or_copy(path).manifest or {}
        for name, value in (manifest.get("settings") or {}).items():
            if name not in ("LARM_DIR", "LARM_SHARDS", "LARM_WORKER"):
                settings.set(name, value, priority="project")
        settings.set("LARM_DIR", str(path), priority="cmdline")
        with progress(f"Checking {path}") as say:
            if not repairs:
                return check(path, settings, say), []
            with locked(path / LOCK):
                finish(path)
                found = check(path, settings, say, running=False)
                if not (found.damages or found.unsummed):
                    return found, []
                if path == root:
                    return found, list(repair(found, settings, say))
                due: dict[bytes, str] = {}
                left = list(repair(found, settings, say, make_due=_later(due)))
            if due:
                left += self._make_due(root, due)
            return found, left

    def _make_due(self, root: Path, due: Mapping[bytes, str]) -> list[str]:
        """Make pages due in Redis if workers share the crawl."""
        assert self.settings is not None
        try:
            crawl = open_crawl(root, (), self.settings)
            change(crawl, self.settings, lambda one, _, backend: make_due(backend, due, one.forms))
        except LarmspiderError as error:
            return [f"{counted(len(due), 'page')} could not be made due: {error}"]
        return []

    def _print(self, every: list[Findings], left: list[str], opts: argparse.Namespace) -> None:
        if opts.json:
            print_json(
                {
                    "damages": [one.as_json() for found in every for one in found.damages],
                    "more": sum(found.more for found in every),
                    "due": sorted({url for found in every for url in found.due.values()}),
                    "awaited": sorted({url for found in every for url in found.awaited.values()}),
                    "pages": sum(found.pages for found in every),
                    "left": left,
                    "notes": [note for found in every for note in found.notes],
                    "repaired": opts.repair,
                }
            )
            return
        for found in every:
            for damage in found.damages:
                print(printable(str(damage)))
            if found.more:
                print(f"{found.path}: {found.more:,} more")
            for note in found.notes:
                print(f"{printable(note)}")
        number = sum(len(found.damages) + found.more for found in every)
        pages = counted(sum(found.pages for found in every), "stored page")
        if awaited := len({key for found in every for key in found.awaited}):
            named = counted(awaited, "page")
            print(
                f"{named} made due by an earlier repair: the next run with -a refresh= fetches them"
            )
        if not number:
            print(f"{pages}: all {'else ' if awaited else ''}is whole")
            return
        due = len({key for found in every for key in found.due})
        print(f"{pages}: {counted(number, 'damage')}, {counted(due, 'page')} to be fetched again")
        if not opts.repair:
            print(f"{program.NAME} verify --repair repairs what it can")
            return
        for line in left:
            print(f"not repaired: {printable(line)}")
        if not left:
            more = "; the next run with -a refresh=due or all fetches the pages" if due else ""
            print(f"everything is repaired{more}")


def _refuse_beside_crawl(path: Path) -> None:
    if is_locked(path / LOCK):
        raise ConfigError(
            f"--repair: a crawl runs in {path}: expected a directory that no crawl writes to"
        )


def _unreadable(path: Path) -> str | None:
    """The file of a directory that this user may not read, and why."""
    unlisted: list[OSError] = []
    for folder, _, names in os.walk(path, onerror=unlisted.append):
        if unlisted:
            break
        for name in names:
            file = Path(folder, name)
            if file.exists() and not os.access(file, os.R_OK):
                return f"{file}: {os.strerror(errno.EACCES)}"
    if unlisted:
        return f"{unlisted[0].filename}: {unlisted[0].strerror}"
    frontier = path / "frontier"
    no_lock = why_no_lock(frontier) if frontier.is_dir() else None
    if no_lock == os.strerror(errno.EACCES):
        return f"{frontier}: {no_lock}; reading it needs a lock file there"
    return None


def _later(due: dict[bytes, str]):  # type: ignore[no-untyped-def]
    def keep(more: Mapping[bytes, str]) -> int:
        due.update(more)
        return len(more)

    return keep
