"""Claims LARM_DIR for one crawl: makes it, locks it, and writes crawl.json, which says what it is.

    crawl/crawl.json     seeds, scope and settings; when it began and how it ended
    crawl/lock           held while a crawl runs, so that no second one writes into its files

The same command again goes on with the crawl that lies there; with other seeds, another scope or
other filters it is another crawl, and is refused unless told what to do.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from larmspider import __version__, options
from larmspider.crawl_files import (
    DESCRIPTION,
    LOCK,
    files_of_others,
    files_of_stores,
    matching,
)
from larmspider.errors import ConfigError, CrawlDirError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

FORMAT = 1

_DRAFT = "crawl.tmp"
_TOLD = (
    "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN", "DOWNLOAD_DELAY", "DOWNLOAD_MAXSIZE",
    "DOWNLOAD_TIMEOUT", "DEPTH_LIMIT", "ROBOTSTXT_OBEY", "URLLENGTH_LIMIT", "USER_AGENT",
)  # fmt: skip


_DECIDE = (
    "LARM_RESTRICT", "LARM_HOST_RESOLVER_FILE", "LARM_KNOWN_PATHS_FILE", "LARM_LOWERCASE_PATH",
    "LARM_LOWERCASE_PATH_EXCEPTIONS", "LARM_SESSION_IDS", "LARM_PATH_DEPTH_LIMIT",
    "LARM_PATH_REPEATS_LIMIT", "LARM_CALENDAR_HORIZON_MONTHS", "LARM_MAX_REDIRECTS",
    "URLLENGTH_LIMIT", "DEPTH_LIMIT", "ROBOTSTXT_OBEY",
)  # fmt: skip
"""Settings that decide which URLs a crawl takes: with others it would be another crawl."""


class CrawlDirectory:
    """``fresh``: "", "yes", or "yes,yes" where stored pages are to be deleted too; ``anyway``: go
    on although the crawl that lies there was another."""

    def __init__(
        self, path: Path, description: dict[str, Any], *, fresh: str = "", anyway: bool = False
    ) -> None:
        self.path = path
        self.description = description
        self.fresh = fresh
        self.anyway = anyway
        self.resumed = False
        """Whether what was claimed holds a crawl to go on with."""
        self._lock: IO[str] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        return cls(
            options.larm_dir(settings),
            _describe(crawler),
            fresh=_fresh(settings),
            anyway=options.choice(settings, "LARM_RESUME", ("", "anyway")) == "anyway",
        )

    def check(self) -> None:
        """Raise ConfigError or CrawlDirError now if ``claim`` would; changes nothing."""
        options.check_writable(self.path)
        if (self.path / LOCK).exists():
            _locked(self.path / LOCK).close()
        if self.path.exists():
            self._refuse_if_taken()

    def claim(self) -> None:
        """Lock the directory, empty it if it is to be a fresh one, and describe the crawl in it."""
        options.writable_dir(self.path)
        self._lock = _locked(self.path / LOCK)
        try:
            self._refuse_if_taken()
            if self.fresh:
                self._make_room()
            earlier = self._earlier()
            self.resumed = earlier is not None
            if earlier is not None:
                self.description["began"] = earlier.get("began")
                self.description["stores"] = _stores(earlier) | self.description["stores"]
                self.description["files"] = sorted({*_files(earlier), *_files(self.description)})
            self._write()
        except BaseException:
            self.release()
            raise

    def finish(self, reason: str) -> None:
        """Note how the crawl ended and unlock."""
        if self._lock is None:
            return
        self.description |= {"ended": _now(), "end": reason}
        try:
            self._write()
        except CrawlDirError as error:
            logger.error("%s", error)  # the disk is full, for one
        finally:
            self.release()

    def release(self) -> None:
        """Unlock; may be called twice."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _earlier(self) -> dict[str, Any] | None:
        try:
            earlier = json.loads((self.path / DESCRIPTION).read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CrawlDirError(f"{self.path / DESCRIPTION} cannot be read: {error}") from None
        if not isinstance(earlier, dict) or earlier.get("format") != FORMAT:
            raise CrawlDirError(f"{self.path / DESCRIPTION} is not of format {FORMAT}")
        return earlier

    def _refuse_if_taken(self) -> None:
        present = [path for path in self.path.iterdir() if path.name not in (LOCK, _DRAFT)]
        described = (self.path / DESCRIPTION).exists()
        if present and not described:
            raise CrawlDirError(
                f"LARM_DIR={self.path} holds other files ({present[0].name}): name an empty"
                " directory, or one that does not exist yet, with -s LARM_DIR=DIR"
            )
        if self.fresh:
            self._refuse_to_delete()
        elif described and not self.anyway:
            self._refuse_another(self._earlier() or {})

    def _refuse_to_delete(self) -> None:
        try:
            with (self.path / "store.log").open("rb") as log:
                stored = sum(1 for _ in log)
        except OSError:
            stored = 0
        held = f"{stored:,} stored pages" if stored else self._held_by_own_stores()
        if held and self.fresh != "yes,yes":
            raise CrawlDirError(
                f"LARM_DIR={self.path} holds {held}: to delete them"
                " ask twice, -a fresh=yes,yes; -s LARM_DIR=DIR names another directory"
            )

    def _held_by_own_stores(self) -> str:
        """What stores that are not ours have written; "" for nothing."""
        for store, files in _stores(self._earlier_if_any()).items():
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
        was, now = earlier.get("identity") or {}, self.description["identity"]
        for name in (*now, *was):
            if was.get(name) != now.get(name):
                raise CrawlDirError(
                    f"LARM_DIR={self.path} holds a crawl with other {name}:"
                    f" {_short(was.get(name))} then, {_short(now.get(name))} now;"
                    " -a resume=anyway goes on with it, -a fresh=yes starts over,"
                    " -s LARM_DIR=DIR names another directory"
                )

    def _make_room(self) -> None:
        """What the components of both crawls name, and no other file. crawl.json goes last: while
        it is there, what is left is known to be ours."""
        names = {*_files(self._earlier_if_any()), *_files(self.description)}
        for path in [*matching(self.path, names), self.path / DESCRIPTION]:
            logger.info("Starting over: deleting %s", path)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _write(self) -> None:
        target = self.path / DESCRIPTION
        draft = self.path / _DRAFT
        text = json.dumps(self.description, indent=1, ensure_ascii=False, default=str)
        try:
            draft.write_text(text, "utf-8")
            draft.replace(target)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise CrawlDirError(f"{target} cannot be written: {error.strerror or error}") from None


def _fresh(settings: BaseSettings) -> str:
    value = str(settings.get("LARM_FRESH") or "").strip().lower()
    asked = [options.as_boolean("fresh", part) for part in value.split(",")]
    return ",".join("yes" for part in asked if part)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _stores(description: dict[str, Any]) -> dict[str, list[str]]:
    stores = description.get("stores")
    return stores if isinstance(stores, dict) else {}


def _files(description: dict[str, Any]) -> list[str]:
    """All names of files in a description, of stores and others."""
    of_stores = [name for names in _stores(description).values() for name in names]
    return [str(name) for name in (*of_stores, *(description.get("files") or ()))]


def _describe(crawler: Crawler) -> dict[str, Any]:
    spider = crawler.spider
    assert spider is not None
    return {
        "format": FORMAT,
        "larmspider": __version__,
        "spider": spider.name,
        "seeds": list(getattr(spider, "start_urls", ())),
        "identity": _identity(crawler),
        "settings": _told(crawler.settings),
        "stores": files_of_stores(crawler.settings),
        "files": files_of_others(crawler.settings),
        "began": _now(),
    }


def _identity(crawler: Crawler) -> dict[str, Any]:
    """What makes this crawl this crawl, in an order to compare and to complain in."""
    settings = crawler.settings
    listed = settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES")
    identity: dict[str, Any] = {
        "seeds": sorted(getattr(crawler.spider, "start_urls", ())),
        "filters": sorted(str(name) for name, order in listed.items() if order is not None),
    }
    for name in _DECIDE:
        value = options.typed(settings, name)
        if name.endswith("_FILE") and value:
            value = _digest(Path(value).expanduser())
        identity[name] = value
    return identity


def _digest(path: Path) -> str:
    """Of a file's content: rules that were edited are other rules."""
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError:
        return "unreadable"


def _told(settings: BaseSettings) -> dict[str, Any]:
    """What decides about URLs and pace: enough to explain the crawl's verdicts later."""
    names = [name for name in settings if name.startswith("LARM_")]
    names = [*sorted(names), *_TOLD]
    told = {name: options.typed(settings, name) for name in names if name != "LARM_START"}
    for name, value in told.items():
        if name.endswith("_FILE") and value:
            told[name] = str(Path(value).expanduser().absolute())
    return told


def _locked(path: Path) -> IO[str]:
    try:
        file = path.open("a")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise CrawlDirError(
            f"LARM_DIR={path.parent} is in use: another crawl writes there"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be locked: {error.strerror or error}") from None
    return file


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
