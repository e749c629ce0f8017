"""Changes a stopped crawl's stores and frontier, as one checkpoint.

    pages = change(crawl, settings, lambda part, stores, backend: ...)

If workers share the crawl, its first worker makes the change and has all hosts meanwhile; then each
other worker drops outdated pages in its directory. Their Redis is the one that REDIS_URL names, or
the private one of `scrapy workers`, which runs during the change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy.settings import BaseSettings
from scrapy.signalmanager import SignalManager
from scrapy.utils.misc import load_object

from larmspider import options, program
from larmspider.checksums import kept_checksums
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import is_locked
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.pipelines.compaction import finish as finish_compaction
from larmspider.pipelines.outbox.receiver import OutboxStore, Receiver
from larmspider.pipelines.store import Store
from larmspider.scheduler.checkpoint import let_go
from larmspider.urls.normalizer import UrlForms
from larmspider.workdir.directory import REDIS_DIR, locked, waited_for, write_manifest
from larmspider.workdir.left import changing
from larmspider.workdir.manifest import CHECKSUMS, LOCK, SHARED, is_shared, stores_in
from larmspider.workdir.manifest_copy import read_or_copy

if TYPE_CHECKING:
    from larmspider.cluster.joining import SharedCrawl
    from larmspider.cluster.shared_backend import RedisBackend

Act: TypeAlias = Callable[[CrawlDir, Sequence[Store], Backend], int]
_DELETED_LOG = "larmspider.pipelines.deleted_log.DeletedLogPipeline"
_LOOK_SECS = 0.1


def change(crawl: CrawlDir, settings: BaseSettings, act: Act) -> int:
    """Let ``act`` change the crawl, and return its result; it gets the directory that has all URLs.
    Raises CrawlDirError, and ConfigError without the right Redis."""
    if is_shared(crawl.manifest):
        return _change_shared(crawl, settings, act)
    with locked(crawl.path / LOCK):
        finish_compaction(crawl.path)
        with changing(crawl.path):
            backend = LmdbBackend(crawl.path / "frontier")
            try:
                done = asyncio.run(_with_stores(crawl, settings, backend, act))
            finally:
                backend.close()
        _keep_checksums(crawl.path)
        return done


def _keep_checksums(path: Path) -> None:
    """The next check misses the checksums that the change has added, as after a run."""
    manifest = read_or_copy(path).manifest
    if manifest is not None and CHECKSUMS in manifest:
        write_manifest(path, manifest | {CHECKSUMS: kept_checksums(path)})


async def _with_stores(
    part: CrawlDir,
    settings: BaseSettings,
    backend: Backend,
    act: Act,
    begin: Callable[[], object] = bool,
    more: Callable[[Sequence[Store]], bool] = lambda _: False,
) -> int:
    """``begin()`` is called before ``act``; ``more(stores)`` after each checkpoint, until there is
    nothing more to commit."""
    stores = list(_stores(part, settings))
    positions = backend.recover().positions
    for store in stores:
        store.recovered(positions)
    try:
        for store in stores:
            if (opening := store.open_spider()) is not None:
                await opening
        begin()
        done = act(part, stores, backend)
        await _checkpoint(stores, backend)
        while more(stores):
            await _checkpoint(stores, backend)
    finally:
        for store in stores:
            if (closing := store.close_spider()) is not None:
                await closing
    return done


async def _checkpoint(stores: Sequence[Store], backend: Backend) -> None:
    positions = dict(store.checkpoint() for store in stores)
    backend.seal()
    for store in stores:
        if (committing := store.commit()) is not None:
            await committing
    backend.commit(positions)
    backend.discard()
    for store in stores:
        store.committed(positions)


def _stores(part: CrawlDir, settings: BaseSettings) -> Iterator[Store]:
    """The crawl's stores, without the crawl."""
    stats: Any = SimpleNamespace(set_value=lambda *_: None, inc_value=lambda *_: None)
    crawler: Any = SimpleNamespace(
        settings=settings, stats=stats, signals=SignalManager(), spider=None, crawling=True
    )
    crawler.engine = SimpleNamespace(running=True)
    # earlier crawls lack the log; receivers have one outbox, and are not needed to write to it
    found = map(load_object, (_DELETED_LOG, *stores_in(part.manifest)))
    for store in dict.fromkeys(OutboxStore if _is_a(one, Receiver) else one for one in found):
        if _is_a(store, Store):
            yield store.from_crawler(crawler)


def _is_a(component: object, ours: type) -> bool:
    return isinstance(component, type) and issubclass(component, ours)


# a crawl that workers share


def _change_shared(crawl: CrawlDir, settings: BaseSettings, act: Act) -> int:
    parts = [part for part in crawl.parts if part.path.parent == crawl.path]
    done, acts = 0, act
    with ExitStack() as stack:
        # workers that start now wait for this lock, so that they find their directories free
        stack.enter_context(waited_for(crawl.path / LOCK))
        shared, wanted = stack.enter_context(_redis_of(crawl, settings))
        for part in parts:
            stack.enter_context(locked(part.path / LOCK))
        if living := shared.living():
            raise CrawlDirError(
                f"{', '.join(living)} work on the crawl in Redis at {shared.where}, elsewhere or"
                " until a moment ago: stop them first"
            )
        for number, part in enumerate(parts):
            finish_compaction(part.path)
            stack.enter_context(changing(part.path))
            own = wanted.copy()
            own.set("LARM_WORKER", part.path.name, priority="cmdline")
            done += _as_worker(shared, part, own, acts, has_all=not number)
            acts = _nothing
    return done


def _nothing(_part: CrawlDir, _stores: Sequence[Store], _backend: Backend) -> int:
    return 0


@contextmanager
def _redis_of(
    crawl: CrawlDir, settings: BaseSettings
) -> Iterator[tuple[SharedCrawl, BaseSettings]]:
    """The crawl in Redis, and settings that name it."""
    # here, as most crawls have no Redis: its client takes 0.1 s to import
    from larmspider.cluster.joining import SharedCrawl
    from larmspider.cluster.redis_server import PrivateRedis

    spider = str(crawl.manifest["spider"])
    if options.many_workers(settings):
        yield SharedCrawl(settings, spider), settings
        return
    folder = crawl.path / REDIS_DIR
    if not folder.exists():
        where = crawl.manifest[SHARED].get("redis", "")
        raise ConfigError(
            f"the queues of the crawl in {crawl.path} are in Redis ({where}): expected"
            " -s REDIS_URL=..., which names it"
        )
    if is_locked(folder / LOCK):
        raise CrawlDirError(
            f"`{program.NAME} workers` is starting or ending in {crawl.path}: try again once"
            " its workers"
            " crawl, or have ended"
        )
    with PrivateRedis(folder) as private:
        wanted = settings.copy()
        wanted.set("REDIS_URL", private.url, priority="cmdline")
        shared = SharedCrawl(wanted, spider)
        shared.expire_ended(crawl.path)
        yield shared, wanted


def _as_worker(
    shared: SharedCrawl, part: CrawlDir, settings: BaseSettings, act: Act, *, has_all: bool
) -> int:
    """``has_all``: act as the owner of all hosts."""
    from larmspider.cluster.shared_backend import RedisBackend

    forms, name = UrlForms.from_settings(settings), part.path.name
    with shared.joined(name) as (membership, earlier):
        backend = RedisBackend(
            part.path / "frontier",
            shared.link,
            shared.keys,
            worker=name,
            epoch=membership.epoch,
            forms=forms if forms.has_guesses else None,
        )

        def begin() -> None:
            while earlier and not membership.reap(earlier):
                backend.replay(name)
            if has_all:
                _take_all(backend, membership)

        def more(stores: Sequence[Store]) -> bool:
            outdated = backend.has_outdated()
            let_go(backend.take_outdated(), stores, forms, time.time())
            return outdated

        try:
            done = asyncio.run(_with_stores(part, settings, backend, act, begin, more))
            if not membership.leave(backend.known):
                raise CrawlDirError(
                    f"Redis at {shared.where} has come back without that: try again"
                )
        finally:
            backend.close()
    return done


def _take_all(backend: RedisBackend, membership: Any) -> None:
    while len(backend.owned) < membership.partitions:
        beat = membership.beat()
        if beat.workers > 1:
            raise CrawlDirError("another worker has joined the crawl: stop it first")
        for epoch, name in beat.dead.items():
            backend.replay(name)
            membership.reap(epoch, name)
        if given := {at: of for at, of in beat.held.items() if at not in backend.owned}:
            backend.take(backend.load(given))
        elif not beat.dead:
            time.sleep(_LOOK_SECS)
