"""Checks settings and LARM_DIR before anything is opened, so that a refusal changes nothing."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from scrapy.exceptions import NotConfigured
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import build_from_crawler, load_object

from larmspider import __version__, options, plugin, program
from larmspider.cluster.shared_settings import cluster_settings
from larmspider.crawl.reader import read_manifest
from larmspider.crawl.state import FINISHED
from larmspider.crawl.verify.check import check_seals, quick_check
from larmspider.errors import (
    MEND,
    ConfigError,
    CrawlDirError,
    OtherFormatError,
    TemporaryError,
)
from larmspider.extraction.processes.helper_process import origin, shadowed
from larmspider.fetch.curl_options import bind_address_from, setup_from_settings
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.downloader import LarmDownloader
from larmspider.fetch.limits import Limits, RenderLimits, check_open_files
from larmspider.fetch.sites.lookup import Sites
from larmspider.files import why_unwritable
from larmspider.frontier.storage.backend import FormatError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.index.version import has_index, open_index
from larmspider.learned.factory import INDEX, REFRESH_WORDS, check_settings, refresh_pattern
from larmspider.learned.revisits.revisiting import NOTE_ENDED
from larmspider.middlewares.copies import CopiesMiddleware
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.pipelines.outbox.outbox import tried
from larmspider.pipelines.outbox.receiver import Receiver
from larmspider.pipelines.outbox.spool import FOLDER as OUTBOX
from larmspider.pipelines.outbox.spool import Cursor
from larmspider.pipelines.page_files import page_file_name
from larmspider.pipelines.store import Store
from larmspider.redaction import keep_secrets_of, keep_secrets_of_environment
from larmspider.scheduler.scheduler import FrontierScheduler
from larmspider.urls.canonical import Forms
from larmspider.urls.normalizer import UrlForms, canonicalizer_from_settings
from larmspider.urls.patterns import Pattern
from larmspider.workdir import worker_name
from larmspider.workdir.access import keep_private
from larmspider.workdir.directory import (
    ClusterDirectory,
    CrawlDirectory,
    asked_fresh,
    worker_dirs,
)
from larmspider.workdir.frames import present
from larmspider.workdir.manifest import EXACT_FORM

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


def check_pair(settings: BaseSettings) -> None:
    """Raise ConfigError if only one of SCHEDULER and DOWNLOADER is larmspider's."""
    scheduler, downloader = load_object(settings["SCHEDULER"]), load_object(settings["DOWNLOADER"])
    ours = (_is_a(scheduler, FrontierScheduler), _is_a(downloader, LarmDownloader))
    if ours == (True, False):
        why = "that downloader's slots would delay requests that the frontier has found due"
        change = "DOWNLOADER=larmspider.fetch.downloader.LarmDownloader"
    elif ours == (False, True):
        why = "this downloader has no slots: it leaves politeness to the frontier"
        change = "SCHEDULER=larmspider.scheduler.FrontierScheduler"
    else:
        return
    raise ConfigError(
        f"SCHEDULER={settings['SCHEDULER']} and DOWNLOADER={settings['DOWNLOADER']} do not go"
        f" together: {why}; set {change}, or replace both"
    )


def _is_a(component: object, ours: type) -> bool:
    return isinstance(component, type) and issubclass(component, ours)


SCRAPY_REDIS = {
    "SCHEDULER_PERSIST": "the crawl in Redis always stays",
    "SCHEDULER_FLUSH_ON_START": "-a fresh=yes starts over",
    "SCHEDULER_QUEUE_CLASS": "LARM_STRATEGY orders a host's URLs",
    "SCHEDULER_QUEUE_KEY": "keys begin with the spider's name",
    "SCHEDULER_DUPEFILTER_KEY": "keys begin with the spider's name",
    "SCHEDULER_DUPEFILTER_CLASS": "the frontier knows each URL",
    "SCHEDULER_SERIALIZER": "nothing is pickled",
    "SCHEDULER_IDLE_BEFORE_CLOSE": "LARM_KEEP_ALIVE waits for seeds",
    "MAX_IDLE_TIME_BEFORE_CLOSE": "LARM_KEEP_ALIVE waits for seeds",
    "REDIS_DECODE_RESPONSES": "answers stay bytes",
    "REDIS_START_URLS_BATCH_SIZE": "up to 20,000 seeds are read at once",
}
"""Settings of scrapy-redis without a meaning here, and their replacements."""


def name_unused(settings: BaseSettings) -> None:
    """Warn in one line of the settings of scrapy-redis that are set and mean nothing here."""
    if not _is_a(load_object(settings["SCHEDULER"]), FrontierScheduler):
        return
    reasons: dict[str, list[str]] = {}
    for name, why in SCRAPY_REDIS.items():
        if settings.get(name) is not None:
            reasons.setdefault(why, []).append(name)
    if reasons:
        listed = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
        logger.warning("Settings of scrapy-redis that have no effect here: %s", listed)


def name_unproven(settings: BaseSettings) -> None:
    """Warn where nothing compares pages, as in a SPIDER_MIDDLEWARES of the user's own."""
    if not _is_a(load_object(settings["SCHEDULER"]), FrontierScheduler):
        return
    components = map(load_object, _components(settings, "SPIDER_MIDDLEWARES"))
    compared = any(_is_a(component, CopiesMiddleware) for component in components)
    if not compared and UrlForms.from_settings(settings).has_guesses:
        logger.warning(
            "SPIDER_MIDDLEWARES has no CopiesMiddleware, so no host proves a rule of"
            " LARM_CANONICAL_RULES, and a page is stored under each of its spellings: add"
            ' "larmspider.middlewares.copies.CopiesMiddleware": 600'
        )


def check(crawler: Crawler) -> None:
    """Raise ConfigError for settings that no crawl can run with."""
    keep_secrets_of_environment()
    for name in ("REDIS_URL", "LARM_WEB_TOKEN", "LARM_NOTIFY"):
        keep_secrets_of(name, crawler.settings.get(name))
    options.check_names(crawler.settings)
    options.check_scrapys(crawler.settings)
    canonicalizer_from_settings(crawler.settings)
    check_settings(crawler.settings)
    cluster_settings(crawler.settings)
    check_pair(crawler.settings)
    name_unused(crawler.settings)
    name_unproven(crawler.settings)
    limits = Limits.from_settings(crawler.settings)
    threads = options.integer(crawler.settings, "CONCURRENT_REQUESTS", minimum=1)
    check_open_files(crawler.settings, threads, "CONCURRENT_REQUESTS")
    DenyAddresses.from_settings(crawler.settings)
    setup_from_settings(crawler.settings, limits)
    bind_address_from(crawler.settings)
    options.integer(crawler.settings, "SCRAPER_SLOT_MAX_ACTIVE_SIZE", minimum=0)
    options.integer(crawler.settings, "LARM_VERSIONS", minimum=0)
    sites = Sites.for_fetching(crawler.settings)
    for warning in sites.warnings:
        logger.warning("%s", warning)
    RenderLimits.from_settings(crawler.settings)
    if sites.renders:
        plugin.load("render.browser").check_browser()
    keep_private(crawler.settings)
    asked_refresh(crawler.settings)
    if crawler.settings.get("JOBDIR") and _is_a(
        load_object(crawler.settings["SCHEDULER"]), FrontierScheduler
    ):
        raise ConfigError(
            f"JOBDIR={crawler.settings['JOBDIR']}: expected none; a crawl keeps its state in"
            " LARM_DIR (-s LARM_DIR=DIR), and the same command continues it"
        )
    _check_filters(crawler)
    if not options.text(crawler.settings, "USER_AGENT").strip():
        raise ConfigError("USER_AGENT is empty: expected a name that identifies the crawler")


def _check_filters(crawler: Crawler) -> None:
    """Build the filters of larmspider: a bad restrict, or a file of rules that cannot be read, is
    reported as that, and not as a difference from the crawl that LARM_DIR holds."""
    for path in _components(crawler.settings, "SPIDER_MIDDLEWARES"):
        component = load_object(path)
        if _is_a(component, UrlFilter) and component.__module__.startswith("larmspider."):
            component.build(crawler)


def _components(settings: BaseSettings, name: str) -> list[Any]:
    """The components that a setting lists, in running order."""
    return build_component_list(settings.get_component_priority_dict_with_base(name))


def settle_canonical_rules(settings: BaseSettings) -> None:
    """With -a resume=anyway a crawl continues by the rules that made its keys."""
    if asked_fresh(settings) or settings.get("LARM_RESUME") != "anyway":
        return
    with suppress(CrawlDirError, OSError):  # no crawl, or its next reader reports the error
        manifest = read_manifest(options.crawl_root(settings))
        _keep_canonical_rules(settings, manifest.get("settings", {}))


def _keep_canonical_rules(settings: BaseSettings, began_with: Mapping[str, Any]) -> None:
    """Keep the settings that decide about the keys of URLs. With other values the frontier would
    not recognize its own URLs."""
    for name in EXACT_FORM:
        if name in began_with and options.typed(settings, name) != began_with[name]:
            logger.warning(
                "%s stays %r, the value at the start of the crawl: another value needs a new crawl",
                name,
                began_with.get(name),
            )
            settings.set(name, began_with.get(name), priority="cmdline")


def _say_where(crawler: Crawler, directory: CrawlDirectory) -> None:
    """Log the directory for jobs of scrapyd: a log's reader does not know their working
    directory."""
    if getattr(crawler.spider, "_job", None) is None:  # scrapyd passes it
        return
    logger.info("larmspider %s from %s; LARM_DIR is %s", __version__, origin(), directory.path)
    if (egg := shadowed()) is not None:
        logger.warning(
            "The egg %s is not the code that runs: uninstall larmspider here, or unset PYTHONPATH",
            egg,
        )
    name = options.text(crawler.settings, "LARM_DIR")
    if not Path(name).expanduser().is_absolute():
        logger.warning(
            "LARM_DIR=%s is relative to the directory that scrapyd was started in; schedule with"
            " setting=LARM_DIR=/... for a fixed place",
            name,
        )


def _join(crawler: Crawler) -> None:
    """Check that the crawl in Redis, if there is one, is this crawl; then choose the worker's
    name."""
    # imported here: a crawl of one process needs no Redis client, which takes 0.1 s to import
    from larmspider.cluster.joining import SharedCrawl

    name = options.text(crawler.settings, "LARM_WORKER")
    if name:
        worker_name.check_name(name)
    assert crawler.spider is not None
    root, shared = ClusterDirectory.from_crawler(crawler), SharedCrawl.of(crawler)
    if root.fresh:
        shared.refuse_to_wipe(root.fresh)
    else:
        shared.refuse_other(crawler)
    root.check()
    with root.unchanging():
        worker_name.settle(crawler.settings)


class PreflightExtension:
    """Checks when the crawl is built, and does nothing afterwards."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoReturn:
        """Raises ConfigError or CrawlDirError for a crawl that is refused, else NotConfigured."""
        settle_canonical_rules(crawler.settings)
        check(crawler)
        if options.many_workers(crawler.settings):
            _join(crawler)
        directory = CrawlDirectory.from_crawler(crawler)
        _say_where(crawler, directory)
        directory.check()
        if _is_a(load_object(crawler.settings["SCHEDULER"]), FrontierScheduler):
            directory.check_frontier()
        if not directory.fresh:
            check_room(directory.path)
            check_files(directory.path)
        if options.many_workers(crawler.settings):
            check_shared_refresh(crawler)
        else:
            check_refresh(crawler.settings, directory.path)
        check_receivers(crawler.settings, directory)
        raise NotConfigured


def check_room(path: Path) -> None:
    """Raise CrawlDirError if the last run was cut off, and the files of the frontier cannot grow.
    LMDB maps a file to read: on a full btrfs, that ends the process without a message."""
    frontier = path / "frontier"
    with suppress(CrawlDirError, OSError):  # its next reader reports the error
        if read_manifest(path).get("end") not in (None, "broken") or not frontier.is_dir():
            return
    why = why_unwritable(frontier)
    if why is not None and os.strerror(errno.EFBIG) not in why:  # a run may need no larger file
        raise CrawlDirError(
            f"{frontier} cannot be written: {why}; make room, and run the same command to continue"
        )


def check_files(path: Path) -> None:
    """The cheap half of `scrapy verify`. Raises CrawlDirError for a frontier or an index that a run
    would write on in; damaged lines of logs are passed over by all, and named here."""
    frontier, index = path / "frontier", path / "index"
    if has_index(index):
        open_index(index)
    if not (frontier / "data.mdb").exists():
        return
    try:
        with FrontierReader(frontier) as reader:
            positions = reader.positions()
    except (FormatError, OtherFormatError):
        raise
    except CrawlDirError:
        return  # left by a kill while it was made, or the scheduler will complain
    check_seals(path)
    for damage in quick_check(path, positions):
        logger.error("%s; %s", damage, MEND)


def check_receivers(settings: BaseSettings, directory: CrawlDirectory) -> None:
    """Connect to each receiver once. Raises ConfigError for a receiver that refuses; it comes
    first, because waiting does not help there. Raises TemporaryError for a receiver that cannot be
    reached, unless this crawl has sent to it before: then pages wait for it."""
    away = ""
    for path in _components(settings, "ITEM_PIPELINES"):
        component = load_object(path)
        if not _is_a(component, Receiver):
            continue
        name = component.__name__
        component.from_settings(settings)
        where = component.look_at or next(iter(component.settings), "")
        look = f"look at {where}, or " if where else ""
        what_to_do = f"{look}take {name} out of ITEM_PIPELINES"
        kind, error = tried(component, settings)
        why = error.rstrip(".")
        if kind == "refused":
            raise ConfigError(f"{name} cannot be used: {why}; {what_to_do}")
        if kind == "away":
            known = None if directory.fresh else Cursor.read(directory.path / OUTBOX, name)
            if known is None or not known.sent:
                unreached = f"{name} cannot be reached: {why}; start the server, {what_to_do}"
                away = away or unreached
            else:
                logger.warning("%s cannot be reached: %s; pages wait in the outbox", name, error)
    if away:
        raise TemporaryError(away)


def asked_refresh(settings: BaseSettings) -> tuple[str, Pattern | None]:
    """LARM_REFRESH, and the pattern that it is, if it is one. Raises ConfigError."""
    asked = options.text(settings, "LARM_REFRESH").strip()
    if asked == INDEX:
        raise ConfigError(
            f"refresh={INDEX}: expected the command {program.NAME} crawl, or {program.NAME} reindex"
        )
    pattern = None if not asked or asked in REFRESH_WORDS else refresh_pattern(asked)
    if asked and (fresh := asked_fresh(settings)):
        raise ConfigError(f"refresh={asked} and fresh={fresh}: expected one of them")
    return asked, pattern


def check_shared_refresh(crawler: Crawler) -> None:
    """check_refresh() for a crawl that workers share."""
    asked, pattern = asked_refresh(crawler.settings)
    if not asked:
        return
    from larmspider.cluster.joining import SharedCrawl

    shared = SharedCrawl.of(crawler)
    where = f"Redis at {shared.where}"
    if (ended := shared.has_ended()) is None:
        raise ConfigError(
            f"refresh={asked}: expected a crawl that has ended in {where}, there is none"
        )
    if not ended:
        _refuse_unended(asked, where)
    root = options.crawl_root(crawler.settings)
    for path in worker_dirs(root):
        with suppress(CrawlDirError), FrontierReader(path / "frontier") as reader:
            _refuse_without_files(asked, path, reader.positions())
    normalize = UrlForms.from_settings(crawler.settings)
    if pattern is not None:
        _refuse_unmatched(asked, pattern, map(normalize, shared.urls()), shared.where)


def _refuse_unended(asked: str, where: object) -> NoReturn:
    raise ConfigError(
        f"refresh={asked}: the crawl in {where} has not ended yet; run the same command without"
        " refresh to continue it"
    )


def _refuse_unmatched(asked: str, pattern: Pattern, known: Iterable[Forms], where: object) -> None:
    if not any(pattern.fullmatch(forms.normalized) for forms in known):
        raise ConfigError(
            f"refresh={asked}: no page of the crawl in {where} has such a URL: expected"
            f" {', '.join(REFRESH_WORDS)}, or a regular expression that whole URLs match"
        )


def check_refresh(settings: BaseSettings, path: Path) -> None:
    """Raise ConfigError if LARM_REFRESH wants pages that cannot be visited again."""
    asked, pattern = asked_refresh(settings)
    if not asked:
        return
    try:
        reader = FrontierReader(path / "frontier")
    except CrawlDirError:
        raise ConfigError(
            f"refresh={asked}: expected a crawl that has ended in LARM_DIR={path}, there is none"
        ) from None
    with reader:
        if reader.note(NOTE_ENDED) is None and read_manifest(path).get("end") != FINISHED:
            _refuse_unended(asked, path)
        _refuse_without_files(asked, path, reader.positions())
        normalize = UrlForms.from_settings(settings)
        if pattern is not None:
            known = (normalize(visit.url) for _, visit in reader.visits())
            _refuse_unmatched(asked, pattern, known, path)


def _refuse_without_files(asked: str, path: Path, positions: Mapping[str, bytes]) -> None:
    """The files that the stores continue must exist."""
    at = (positions.get("PageFilesPipeline") or b"0 0 0").split()
    sizes = {page_file_name(int(at[0])): at[1], "store.log": at[-1]}
    sizes["links.log"] = positions.get("LinkLogPipeline") or b"0"
    for name, size in sizes.items():
        if int(size) and not present(path / name).exists():
            raise ConfigError(
                f"refresh={asked}: {path / name} is gone: expected the files of the crawl; put"
                f" them back, or {program.NAME} verify --repair has their pages fetched again"
            )


_LISTS = ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")


def check_components(crawler: Crawler) -> None:
    """Build the filters, stores and other components of larmspider once and throw them away, so
    that their refusals come before anything is deleted or started. Raises ConfigError.

    Foreign components are not built: that may have side effects. ``crawler`` has its spider and
    stats, and must not run afterwards.
    """
    asyncio.run(_build_all(crawler))  # as in a crawl, an event loop is running


async def _build_all(crawler: Crawler) -> None:
    for name in _LISTS:
        for path in _components(crawler.settings, name):
            component = load_object(path)
            if _is_ours(component):
                try:
                    build_from_crawler(component, crawler)
                except NotConfigured:
                    pass  # turned off


def _is_ours(component: object) -> bool:
    if not isinstance(component, type) or component is PreflightExtension:
        return False
    known = issubclass(component, (UrlFilter, Store))
    return known or component.__module__.startswith("larmspider.")
