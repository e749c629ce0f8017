"""Claims LARM_DIR for one crawl: makes the directory, locks it, and writes crawl.json.

    crawl/crawl.json     the manifest: seeds, scope, settings, when the crawl began and ended
    crawl/lock           locked while a crawl runs, so that no second one writes into its files

The same command continues the crawl in the directory. Other seeds, another scope or other filters
make it another crawl, which is refused unless -a fresh or -a resume says what to do.

The LARM_DIR of many workers has a directory for each, and a manifest for all, marked "workers". The
first worker writes it; a worker with another scope is refused before it writes anything.

    crawl/crawl.json             seeds, scope and settings of all
    crawl/atlas-1/, atlas-2/     each worker's page files, logs, index and crawl.json
    crawl/logs.idx/              an index of the logs of all
    crawl/redis/                 the private redis-server, if ``scrapy workers`` runs one
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from larmspider import options, program
from larmspider.checksums import FOLDER as SUMS
from larmspider.checksums import SEAL, kept_checksums
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import again_with_room, is_locked, lock, make_folder, replace_file
from larmspider.formatting import counted
from larmspider.workdir import left
from larmspider.workdir.frames import open_stored
from larmspider.workdir.manifest import (
    CHECKSUMS,
    CUT_BACK,
    FORMAT,
    LOCK,
    MANIFEST,
    MERGED,
    NO_WORKERS,
    REJUDGE,
    RULES,
    RULES_DIR,
    SHARED,
    WORKER_LOG,
    differing,
    files_in,
    is_shared,
    manifest_of,
    matching,
    now,
    shared_manifest_of,
    shortened,
    stores_in,
)
from larmspider.workdir.manifest_copy import packed, read_or_copy
from larmspider.workdir.pushed import FILES as PUSHED
from larmspider.workdir.restricted import EVERY_HOST, note_restricted, restricted_hosts

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

_DRAFT = "crawl.tmp"
UNKNOWN = {"format": FORMAT, CUT_BACK: True, REJUDGE: True}
"""The manifest of a crawl that has lost its manifest: every restriction that is possible counts."""


class CrawlDirectory:
    """``fresh``: "", "yes", or "force", which also deletes stored pages. ``anyway``: continue even
    if the crawl in the directory was another one."""

    def __init__(
        self, path: Path, manifest: dict[str, Any], *, fresh: str = "", anyway: bool = False
    ) -> None:
        self.path = path
        self.may_go_on = True
        """Whether ``anyway`` can be asked for."""
        self.manifest = manifest
        self.fresh = fresh
        self.anyway = anyway
        self.resumed = False
        """Whether claim() found a crawl to continue."""
        self.rejudge = False
        """Whether links.log has links that were judged by other seeds, scope or filters."""
        self._lock: IO[str] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        directory = cls(
            *cls._path_and_manifest(crawler),
            fresh=asked_fresh(settings),
            anyway=options.choice(settings, "LARM_RESUME", ("", "anyway")) == "anyway",
        )
        note_restricted(directory.manifest, restricted_hosts((), settings))
        directory.may_go_on = getattr(crawler.spider, "may_resume", True)
        return directory

    @classmethod
    def _path_and_manifest(cls, crawler: Crawler) -> tuple[Path, dict[str, Any]]:
        return options.larm_dir(crawler.settings), manifest_of(crawler)

    def check(self) -> None:
        """Raise ConfigError or CrawlDirError if claim() would; changes nothing."""
        options.check_writable(self.path)
        check_free(self.path / LOCK)
        if self.path.exists():
            self._refuse_if_taken()

    def check_frontier(self) -> None:
        """Raise CrawlDirError for a crawl that has pages but has lost its frontier, because its
        stores would go back to the beginning. Changes nothing."""
        data = self.path / "frontier" / "data.mdb"
        if self.fresh or not (self.path / MANIFEST).exists():
            return
        if (not data.exists() or not data.stat().st_size) and (held := self._held()):
            raise CrawlDirError(
                f"{data.parent}: the frontier is gone, and LARM_DIR={self.path} holds {held}:"
                f" put it back, or {program.NAME} verify --repair rebuilds it from the stored pages"
            )

    def claim(self) -> None:
        """Lock the directory, empty it for a fresh start, and write crawl.json."""
        options.writable_dir(self.path)
        self._lock = locked(self.path / LOCK)
        try:
            self._refuse_if_taken()
            left.begin(self.path)
            self._say_where_from()
            if self.fresh:
                self._make_room()
            earlier = self._earlier()
            self.resumed = earlier is not None
            if earlier is not None:
                self.manifest["began"] = earlier.get("began")
                self._note_other_rules(earlier)
                if earlier.get(CUT_BACK) or earlier.get("end") in (None, "broken"):
                    self.manifest[CUT_BACK] = True
                note_restricted(self.manifest, restricted_hosts([earlier]))
                self._add_files_of(earlier)
            self._write()
            self._keep_rules()
        except BaseException:
            self.release()
            raise

    def _note_other_rules(self, earlier: dict[str, Any]) -> None:
        other = differing(earlier.get("identity") or {}, self.manifest["identity"])
        self.rejudge = bool(earlier.get(REJUDGE) or other)
        if self.rejudge:
            self.manifest[REJUDGE] = True

    def note_rejudge(self, *, needed: bool) -> None:
        """Keep in crawl.json whether the links of links.log have to be judged again."""
        self.rejudge = needed
        self.manifest.pop(REJUDGE, None)
        if needed:
            self.manifest[REJUDGE] = True
        if self._lock is not None:
            self._write()

    def clear(self) -> None:
        """Delete the crawl that lies here, if ``fresh`` allows it; the directory stays."""
        self._lock = locked(self.path / LOCK)
        try:
            self._refuse_if_taken()
            self._make_room()
        finally:
            self.release()

    def finish(self, reason: str, **more: Any) -> None:
        """Write to crawl.json how the crawl ended, and ``more``; unlock."""
        if self._lock is None:
            return
        try:
            if reason != "broken":
                left.leave(self.path)
            kept = {} if reason == "broken" else {CHECKSUMS: kept_checksums(self.path)}
            self.manifest |= {"ended": now(), "end": reason, **kept, **more}
            self._write()
        except CrawlDirError as error:
            logger.error("%s", error)  # the disk may be full
        finally:
            self.release()

    def release(self) -> None:
        """Unlock. May be called twice."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _add_files_of(self, earlier: dict[str, Any]) -> None:
        self.manifest["stores"] = stores_in(earlier) | self.manifest["stores"]
        self.manifest["files"] = sorted({*files_in(earlier), *files_in(self.manifest)})

    def _earlier(self) -> dict[str, Any] | None:
        """The manifest of the crawl in this directory, or its copy in the frontier. None without a
        crawl, and for a crawl that ended before its first commit."""
        found = read_or_copy(self.path)
        if found.manifest is not None or not found.trouble or not found.committed:
            return found.manifest
        if self.anyway:
            own = {name: self.manifest.get(name) for name in ("settings", SHARED)}
            unknown = UNKNOWN | {name: value for name, value in own.items() if value is not None}
            note_restricted(unknown, [EVERY_HOST])
            return unknown
        raise CrawlDirError(
            f"{found.trouble}, and the frontier has no copy of it: put it back; or continue with"
            " the seeds, scope and settings of this command by -a resume=anyway"
        )

    def _say_where_from(self) -> None:
        """Log in one line that crawl.json cannot be used, and what replaces it."""
        if self.fresh:
            return
        found = read_or_copy(self.path)
        if not found.trouble:
            return
        if found.copied:
            logger.warning("%s: it is restored from its copy in the frontier", found.trouble)
        elif found.committed:
            logger.warning(
                "%s: it is rebuilt from this command. All links are judged again, and as the"
                " hosts with credentials are not known, no page is shown to everybody",
                found.trouble,
            )
        else:
            logger.warning("%s, and nothing was committed: the crawl begins", found.trouble)

    def _may_lie_there(self, path: Path) -> bool:
        """Whether a refused crawl, a worker, or a client that pushes documents may have left this
        here."""
        return path.name in (LOCK, WORKER_LOG, _DRAFT, *PUSHED)

    def _refuse_if_taken(self) -> None:
        present = [path for path in self.path.iterdir() if not self._may_lie_there(path)]
        described = (self.path / MANIFEST).exists() or self._has_copy()
        if present and not described:
            raise CrawlDirError(
                f"LARM_DIR={self.path} holds other files ({present[0].name}): name an empty"
                " directory, or one that does not exist yet, with -s LARM_DIR=DIR"
            )
        if described and not self.fresh:
            read_or_copy(self.path)  # raises for another format
        if described:
            self._refuse_other_kind(self._earlier_if_any())
            self._refuse_pushed_or_crawled(self._earlier_if_any())
        if self.fresh:
            self._refuse_to_delete()
        elif described and not self.anyway and (earlier := self._earlier()) is not None:
            self._refuse_another(earlier)

    def _has_copy(self) -> bool:
        try:
            return read_or_copy(self.path).copied
        except CrawlDirError:  # another format
            return True

    def _refuse_other_kind(self, earlier: dict[str, Any]) -> None:
        if earlier.get(MERGED) and not self.fresh:
            raise CrawlDirError(
                f"LARM_DIR={self.path} was made by '{program.NAME} merge' of the directories of"
                " many workers, and is for reading: the crawl goes on in those; -s LARM_DIR=DIR"
                " names another directory"
            )
        was, now = is_shared(earlier), is_shared(self.manifest)
        if was and not now:
            raise CrawlDirError(
                f"LARM_DIR={self.path} holds a crawl of many workers: '{program.NAME} workers',"
                " or a worker with its REDIS_URL, continues it; -s LARM_DIR=DIR names another"
                " directory"
            )
        if now and not was:
            raise CrawlDirError(
                f"LARM_DIR={self.path} holds the crawl of one process, which many workers cannot"
                " continue: name another directory with -s LARM_DIR=DIR"
            )

    def _refuse_pushed_or_crawled(self, earlier: dict[str, Any]) -> None:
        """A crawl would give no page that was pushed, and take pages out that it does not find."""
        is_push = {True: "pushed to", False: "crawled"}
        was = bool(earlier.get("settings", {}).get("LARM_PUSH"))
        now = bool(self.manifest.get("settings", {}).get("LARM_PUSH"))
        if earlier and was is not now and not self.fresh:
            raise ConfigError(
                f"LARM_DIR={self.path} was {is_push[was]} before, and cannot be {is_push[now]}:"
                " name another directory, or another kind in the crawl file"
            )

    def _held(self) -> str:
        """The stored pages and files in words; "" if nothing was stored."""
        try:
            with open_stored(self.path / "store.log") as log:
                stored = sum(_is_page(line) for line in log)
        except OSError:
            stored = 0
        return counted(stored, "stored page") if stored else self._held_by_own_stores()

    def how_to_start_over(self) -> str:
        """Which ``fresh`` it takes, in words."""
        held = self._held()
        return f"-a fresh={f'force deletes {held} and' if held else 'yes'} starts over"

    def _refuse_to_delete(self) -> None:
        held = self._held()
        if held and self.fresh != "force":
            raise CrawlDirError(
                f"LARM_DIR={self.path} holds {held}: -a fresh=force deletes them, -s"
                " LARM_DIR=DIR names another directory"
            )

    def _held_by_own_stores(self) -> str:
        """The files that the user's own stores have written; "" if nothing."""
        for store, files in stores_in(self._earlier_if_any()).items():
            if not store.startswith("larmspider."):
                for path in matching(self.path, files):
                    if path.is_dir() or path.stat().st_size:
                        return f"the files of {store} ({path.name})"
        return ""

    def _earlier_if_any(self) -> dict[str, Any]:
        try:
            return self._earlier() or {}
        except CrawlDirError:
            return {}

    def _refuse_another(self, earlier: dict[str, Any]) -> None:
        was, now = earlier.get("identity") or {}, self.manifest["identity"]
        if part := differing(was, now):
            go_on = " -a resume=anyway continues it," if self.may_go_on else ""
            raise CrawlDirError(
                f"LARM_DIR={self.path} holds a crawl with other {part}:"
                f" {shortened(was.get(part))} then, {shortened(now.get(part))} now;"
                f"{go_on} {self.how_to_start_over()},"
                " -s LARM_DIR=DIR names another directory"
            )

    def _make_room(self) -> None:
        """Delete the files that components of the old and the new crawl name, and no others.
        crawl.json goes last: until then the remaining files are known to be a crawl's."""
        names = {*files_in(self._earlier_if_any()), *files_in(self.manifest), RULES_DIR, SUMS, SEAL}
        for path in [*matching(self.path, names), self.path / MANIFEST]:
            logger.info("Starting over: deleting %s", path)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def restrict(self, hosts: Iterable[str]) -> None:
        """Note in crawl.json that not everybody may see these hosts. Raises CrawlDirError."""
        note_restricted(self.manifest, hosts)
        self._write()

    def _write(self) -> None:
        write_manifest(self.path, self.manifest)

    def _keep_rules(self) -> None:
        """Copy the files of rules, so that the crawl can be explained when these have changed."""
        for name, copy in RULES.items():
            target = self.path / RULES_DIR / copy
            source = self.manifest["settings"].get(name)
            rules = None
            with suppress(OSError):  # the filter that needs the file refuses it
                rules = Path(source).read_bytes() if source else None
            if rules is None:
                target.unlink(missing_ok=True)
            else:
                _replace(target, rules, self.path / _DRAFT)


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """crawl.json of the crawl in ``path``, whose lock the caller has. Raises CrawlDirError."""
    _replace(path / MANIFEST, packed(manifest), path / _DRAFT)


def _replace(target: Path, content: bytes, draft: Path) -> None:
    try:
        make_folder(target.parent)
        replace_file(target, content, draft=draft)
    except OSError as error:
        why = error.strerror or str(error)
        room = again_with_room(why)
        raise CrawlDirError(f"{target} cannot be written: {why}{room and f'; {room}'}") from None


def _is_page(line: bytes) -> bool:
    """Whether a line of store.log belongs to a page, and not to an error such as 404."""
    fields = line.split(b"\t", 5)
    return len(fields) < 6 or not fields[4].startswith((b"4", b"5"))


def asked_fresh(settings: BaseSettings) -> str:
    """LARM_FRESH as "", "yes" or "force" (stored pages too), whose older form is "yes,yes"."""
    value = str(settings.get("LARM_FRESH") or "").strip().lower()
    if value == "force":
        return value
    try:
        asked = [options.as_boolean("fresh", part) for part in value.split(",")]
    except ConfigError:
        asked = []
    if len(asked) > 2 or len(set(asked)) != 1:
        raise ConfigError(f"fresh={value}: expected yes, no, or force to delete stored pages too")
    return "force" if asked == [True, True] else "yes" if asked[0] else ""


LOCK_SECS = 10.0
"""How long a worker waits for the lock, which others that start too have for a moment."""
CHANGE_SECS = 600.0
"""How long workers that are to start wait for a command that changes the crawl they share."""
_TRY_SECS = 0.05
REDIS_DIR = "redis"
REDIS_SOCKET = "redis.sock"
INDEX_DIR = "logs.idx"
"""The index of the logs of all workers."""
_WEB_FILES = ("web.token*", "web.json*", "web.sock")
"""Files of the web pages, whose token is the same for all workers."""


def worker_dirs(root: Path) -> list[Path]:
    """The workers' directories in ``root``, by name, including directories whose crawl.json is gone
    and whose frontier has a copy. Raises CrawlDirError for an unreadable folder: glob() would leave
    it out silently, and the pages of that worker with it."""
    try:
        folders = [path for path in root.iterdir() if path.name != NO_WORKERS]
        return sorted(path for path in folders if is_worker(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CrawlDirError(f"{error.filename or root}: {error.strerror}") from None


def is_worker(path: Path) -> bool:
    """Whether a folder is a crawl's directory."""
    if (path / MANIFEST).exists():
        return True
    return (path / "frontier" / "data.mdb").exists() and read_or_copy(path).copied


def is_unjudged(worker: Path, root: Path) -> bool:
    """Whether the links of a worker's directory were judged by seeds, scope or filters that differ
    from the present ones of the crawl in ``root``."""
    own, crawl = CrawlDirectory(worker, {})._earlier_if_any(), CrawlDirectory(root, {})
    shared = crawl._earlier_if_any().get("identity") or {}
    return bool(own.get(REJUDGE) or differing(own.get("identity") or {}, shared))


class ClusterDirectory(CrawlDirectory):
    """LARM_DIR of many workers: locked only while its manifest is written, the crawl is deleted, or
    a command changes it (control/offline.py)."""

    @classmethod
    def _path_and_manifest(cls, crawler: Crawler) -> tuple[Path, dict[str, Any]]:
        return options.crawl_root(crawler.settings), shared_manifest_of(crawler)

    def check(self) -> None:
        """Do the checks of CrawlDirectory.check(), but accept a lock that is held, because another
        worker may be starting."""
        options.check_writable(self.path)
        if self.path.exists():
            self._refuse_if_taken()

    def claim(self) -> None:
        """Write crawl.json, and with ``fresh`` first delete the files of all workers here.

        Raises ConfigError; CrawlDirError if another crawl lies here, or if a running worker's files
        would have to be deleted. Nothing has changed then.
        """
        options.writable_dir(self.path)
        with waited_for(self.path / LOCK):
            super().claim()
            self.release()

    @contextmanager
    def unchanging(self) -> Iterator[None]:
        """A context in which no command changes the crawl. It waits for a running command. Raises
        CrawlDirError if that takes too long."""
        if not self.path.exists():
            yield
            return
        if is_locked(self.path / LOCK):
            logger.info("Waiting for a command that changes the crawl in %s", self.path)
        with waited_for(self.path / LOCK, CHANGE_SECS):
            yield

    def _may_lie_there(self, path: Path) -> bool:
        if super()._may_lie_there(path) or not path.is_dir():
            return super()._may_lie_there(path)
        if path.name == REDIS_DIR:
            return (path / LOCK).exists()
        return {file.name for file in path.iterdir()} <= {LOCK, WORKER_LOG}

    def _workers(self) -> Iterator[CrawlDirectory]:
        for path in worker_dirs(self.path):
            yield CrawlDirectory(path, {}, fresh=self.fresh)

    def _held(self) -> str:
        held = ((worker.path.name, worker._held()) for worker in self._workers())
        return ", ".join(f"{what} ({name})" for name, what in held if what)

    def _note_other_rules(self, earlier: dict[str, Any]) -> None:
        """Note in each worker's crawl.json that its links have to be judged again."""

    def _add_files_of(self, earlier: dict[str, Any]) -> None:
        """Each worker's crawl.json names its files."""

    def _refuse_to_delete(self) -> None:
        super()._refuse_to_delete()
        for worker in self._workers():
            check_free(worker.path / LOCK)

    def _make_room(self) -> None:
        for worker in self._workers():
            worker.clear()
        for folder in (RULES_DIR, INDEX_DIR):
            shutil.rmtree(self.path / folder, ignore_errors=True)
        for pattern in _WEB_FILES:
            for file in self.path.glob(pattern):
                file.unlink(missing_ok=True)
        (self.path / MANIFEST).unlink(missing_ok=True)


_reserved: dict[Path, IO[str]] = {}


def locked(path: Path) -> IO[str]:
    """The lock of a directory, until it is closed. Raises CrawlDirError if another process has
    the lock, ConfigError if there can be none."""
    if (held := _reserved.pop(path, None)) is not None:
        return held
    try:
        return lock(path)
    except BlockingIOError:
        raise CrawlDirError(
            f"LARM_DIR={path.parent} is in use: another crawl writes there"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be locked: {error.strerror or error}") from None


def reserve(path: Path) -> bool:
    """Lock now, for the next locked() of this process: a worker that looks for a free directory
    reserves it, and claims it later. False if another process has the lock."""
    if path not in _reserved:
        try:
            _reserved[path] = locked(path)
        except CrawlDirError:
            return False
    return True


@contextmanager
def waited_for(path: Path, seconds: float = LOCK_SECS) -> Iterator[None]:
    """Hold a lock that others have for a while only; within, the next locked() of this process
    takes it over. Raises CrawlDirError if it is not free by then."""
    deadline = time.monotonic() + seconds
    while not reserve(path):
        if time.monotonic() > deadline:
            check_free(path)
        time.sleep(_TRY_SECS)
    try:
        yield
    finally:
        if (held := _reserved.pop(path, None)) is not None:
            held.close()


def check_free(path: Path) -> None:
    """Raise as locked() would. A lock that does not exist yet is free."""
    if path not in _reserved and path.exists():
        locked(path).close()
