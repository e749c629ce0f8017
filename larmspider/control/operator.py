"""An operator's actions on a running crawl. Each action is logged, and kept in control.log.

    operator = operator_of(crawler)
    await operator.act("pause-host", {"host": "wiki:80"}, who="127.0.0.1")

The web pages and `scrapy control` call it. Overrides (frontier/overrides.py) stay when the crawl
is continued, unless they were given for one run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request, signals

from larmspider import options
from larmspider import signals as larm_signals
from larmspider.control.remove import find, find_gone, find_refused, take_out
from larmspider.control.scope_change import ScopeChange
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import ConfigError, InvalidURL, LarmspiderError
from larmspider.fetch.downloader import LarmDownloader
from larmspider.fetch.limits import check_open_files
from larmspider.formatting import counted, utc
from larmspider.frontier.overrides import MAX_DELAY, MAX_FACTOR, MAX_THREADS, MIN_FACTOR
from larmspider.middlewares.filter_middleware import FilterMiddleware
from larmspider.pipelines.records import RecordLog
from larmspider.pipelines.store import Store
from larmspider.requests import normalized_of, page_request
from larmspider.scheduler.scheduler import FrontierScheduler, scheduler_of
from larmspider.urls.seeds import read_seeds
from larmspider.workdir.removals import FILE, LOOK_SECS, CurrentRemovals, Rule

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


COMMIT_SECS = 5.0
"""A checkpoint takes some 0.1 s; one that waits for a slow disk or Redis is not waited for."""
MAX_SEEDS = 1_000
MAX_NAMED = 5
"""Refused seeds that the result names."""


async def add_seeds(crawler: Crawler, text: str) -> str:
    """Queue URLs, separated by white space, that pass the filters, and return the result. Raises
    ConfigError, and adds nothing, if one is not a URL."""
    if "@" in text.split("/", 1)[0]:
        raise ConfigError("seeds must be URLs here, not a file")
    seeds = read_seeds(text)
    if not seeds or len(seeds) > MAX_SEEDS:
        raise ConfigError(f"{len(seeds)} seeds: expected 1 to {MAX_SEEDS:,}")
    passed, refused = await _queue(crawler, seeds)
    return f"{passed:,} of {counted(len(seeds), 'seed')} added{refused}"


async def _queue(crawler: Crawler, urls: Iterable[str]) -> tuple[int, str]:
    """Queue the URLs that pass the filters: how many, and which do not, in words."""
    spider = crawler.spider
    assert spider is not None
    requests = [page_request(spider, url) for url in urls]
    chain = crawler.engine.scraper.spidermw.middlewares
    refused = [
        f"{request.url} ({reason})"
        for request in requests
        if (reason := _refusal(request, chain)) is not None
    ]
    passed = [request async for request in _through(chain, requests)]
    for request in passed:
        crawler.engine.crawl(request)
    named = "; ".join(refused[:MAX_NAMED])
    more = f"; {len(refused) - MAX_NAMED:,} more" if len(refused) > MAX_NAMED else ""
    return len(passed), f"; refused: {named}{more}" if named else ""


def _refusal(request: Request, chain: Sequence[Any]) -> str | None:
    """The reason of the first filter that rejects ``request``; None if all let it pass."""
    for one in reversed(chain):
        if isinstance(one, FilterMiddleware):
            probe = request.copy()
            try:
                reason = one.filter.reject_request(probe, normalized_of(probe, one.forms))
            except InvalidURL as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - as in the chain: whatever it raises rejects
                reason = f"the filter raised {error!r}"
            if reason is not None:
                return f"{one.filter.name}: {reason}"
    return None


async def _through(chain: Sequence[Any], requests: list[Request]) -> AsyncIterator[Request]:
    """The output of the spider middlewares for ``requests``, as if start() had yielded them."""

    async def begin() -> AsyncIterator[Any]:
        for request in requests:
            yield request

    stream: AsyncIterator[Any] = begin()
    for one in reversed(chain):
        if hasattr(one, "process_start"):
            stream = one.process_start(stream)
    async for item in stream:
        if isinstance(item, Request):
            yield item


CONTROL_LOG_COLUMNS = ("time", "who", "act", "what", "result")
KEPT = ", once this worker owns it"
"""Ends the result for a host that another worker owns."""
UNSHARED = " (Redis does not answer: workers that get hosts later do not know of it)"
Form = Mapping[str, str]


class OperatorExtension:
    """Carries out actions while the spider is open."""

    files = ("control.log",)

    def __init__(self, crawler: Crawler, directory: Path) -> None:
        self.crawler, self.directory = crawler, directory
        self.scope = ScopeChange(crawler)
        self._log: RecordLog | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._removals = CurrentRemovals(options.crawl_root(crawler.settings))
        self._carried_out = frozenset[Rule]()  # rules of removed.txt
        self._unasked = frozenset[Rule]()  # rules that have changed since
        self._removing: asyncio.Task[None] | None = None
        self._acts: dict[str, Callable[[Form], Awaitable[str]]] = {
            "pause": self._pause,
            "resume": self._resume,
            "stop": self._stop,
            "seeds": self._seeds,
            "slow": self._slow,
            "threads": self._threads,
            "delay": self._delay,
            "connections": self._connections,
            "pause-host": self._pause_host,
            "resume-host": self._resume_host,
            "retry-host": self._retry_host,
            "purge-host": self._purge_host,
            "scope": self._scope,
            "remove": self._remove,
            "queue-again": self._queue_again,
        }

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler, options.larm_dir(crawler.settings))
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.flush, signal=larm_signals.commit)
        connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        self.scope.apply_order()
        scheduler = scheduler_of(self.crawler)
        if scheduler is not None and (threads := scheduler.frontier.control.overrides.threads):
            logger.info("Threads: %d, set by the operator", threads)
            self._tell_downloader(threads)
        self.scope.rejudge()
        with suppress(LarmspiderError):
            self._carried_out = frozenset(self._removals.get().rules)

    def flush(self) -> None:
        if self._log is not None:
            self._log.flush()
        with suppress(LarmspiderError):  # an invalid line: filter and command report it
            self._go_by_removed(frozenset(self._removals.get().rules))

    def _go_by_removed(self, rules: frozenset[Rule]) -> None:
        """Carry out changes of removed.txt that no request has named until the next checkpoint:
        `scrapy remove` cannot send requests to a crawl without web pages."""
        changed = rules ^ self._carried_out
        due, self._unasked = changed & self._unasked, changed
        if due and (self._removing is None or self._removing.done()):
            self._removing = asyncio.get_running_loop().create_task(self._remove_all(rules, due))

    async def _remove_all(self, rules: frozenset[Rule], due: frozenset[Rule]) -> None:
        for rule in sorted(due):
            form = {"kind": rule.kind, "what": rule.what}
            try:
                await self.act("remove", form if rule in rules else form | {"undo": "yes"}, FILE)
            except LarmspiderError as error:
                logger.error("%s: %s %s: %s", FILE, *rule, error)

    def spider_closed(self) -> None:
        self.scope.cancel()
        if self._removing is not None:
            self._removing.cancel()
        if self._log is not None:
            self._log.close()
            self._log = None

    async def act(self, name: str, form: Form, who: str = "") -> str:
        """Carry out an action and return its result. Raises ConfigError if it did nothing."""
        if name not in self._acts:
            raise ConfigError(f"unknown action {name!r}: expected one of {', '.join(self._acts)}")
        keep = _keep(form)
        done = await self._acts[name](form)
        what = " ".join(
            form.get(key, "")
            for key in (
                "host",
                "urls",
                "factor",
                "seconds",
                "threads",
                "connections",
                "restrict",
                "what",
            )
        )
        if not keep:
            what += " for this run"
        logger.info("Control: %s %s: %s", name, " ".join(what.split())[:500], done)
        if self._log is None:
            path = options.writable_dir(self.directory) / "control.log"
            self._log = RecordLog(path, CONTROL_LOG_COLUMNS)
        self._log.append(
            utc(self._scheduler.frontier.clock()), who, name, " ".join(what.split()), done
        )
        self._log.flush()
        await self._commit()
        return done

    async def _commit(self) -> None:
        """Take a checkpoint, because pages and commands show the last checkpoint. The answer waits
        for it for at most COMMIT_SECS. An error ends the crawl, as in any other checkpoint."""
        scheduler = scheduler_of(self.crawler)
        if scheduler is None or scheduler.closed or self._stopping is not None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(scheduler.checkpointed(), COMMIT_SECS)

    @property
    def _scheduler(self) -> FrontierScheduler:
        scheduler = scheduler_of(self.crawler) if self.crawler.engine.spider is not None else None
        if scheduler is None or scheduler.closed:
            raise ConfigError("this crawl does not use larmspider's frontier, or is closing")
        return scheduler

    # the crawl

    async def _pause(self, form: Form) -> str:
        self._scheduler.frontier.control.paused = True
        return "the crawl is paused; fetches under way finish"

    async def _resume(self, form: Form) -> str:
        scheduler = self._scheduler
        scheduler.frontier.control.paused = False
        scheduler.wake()
        return "the crawl continues"

    async def _stop(self, form: Form) -> str:
        self._scheduler.frontier.control.paused = False
        self._stopping = asyncio.get_running_loop().create_task(self.crawler.stop_async())
        return "the crawl stops; start it again to continue it"

    async def _seeds(self, form: Form) -> str:
        return await add_seeds(self.crawler, form.get("urls", ""))

    async def _slow(self, form: Form) -> str:
        factor, keep = _number(form, "factor", MIN_FACTOR, MAX_FACTOR), _keep(form)
        self._scheduler.frontier.control.slow_down(factor, keep=keep)
        worker, kept = self._scheduler.worker, True
        if worker is not None and "everywhere" in form and keep:
            kept = await asyncio.to_thread(worker.overrides.keep_factor, factor)
        done = f"all delays are multiplied by {factor:g}"
        return done + _until(keep) + ("" if kept else UNSHARED)

    async def _threads(self, form: Form) -> str:
        scheduler, keep = self._scheduler, _keep(form)
        threads = _count(form, "threads", MAX_THREADS)
        if threads is not None:
            check_open_files(self.crawler.settings, threads, "threads")
        scheduler.frontier.control.set_threads(threads, keep=keep)
        now = scheduler.frontier.slots.total
        self._tell_downloader(now)
        scheduler.wake()
        again = " again, as the settings say" if threads is None else ""
        return f"{counted(now, 'fetch', 'fetches')} at a time{again}{_until(keep)}"

    def _tell_downloader(self, threads: int) -> None:
        downloader: object = self.crawler.engine.downloader
        if isinstance(downloader, LarmDownloader):
            downloader.total = threads

    async def _scope(self, form: Form) -> str:
        return await self.scope.change(form.get("restrict", ""))

    async def _remove(self, form: Form) -> str:
        """Runs twice, for the pages stored since the last checkpoint."""
        rule = _rule(form)
        self._carried_out = (
            self._carried_out - {rule} if "undo" in form else self._carried_out | {rule}
        )
        chain = self.crawler.engine.scraper.itemproc.middlewares
        stores = [one for one in chain if isinstance(one, Store)]
        pages, crawl = 0, CrawlDir(options.larm_dir(self.crawler.settings))
        backend = self._scheduler.frontier.backend
        if "undo" in form:
            refused = await asyncio.to_thread(find_refused, crawl, rule)
            queued, _ = self._scheduler.frontier.control.reopen(refused)
            return f"{counted(queued, 'URL')} queued again"
        await asyncio.sleep(LOOK_SECS)  # no page is stored any more that does not know of it
        for turn in range(2):
            if turn:
                await self.scope.checkpoint()
            leased = {entry.key for entry in backend.leases()}
            found = await asyncio.to_thread(find, crawl, rule)
            for entries in (found.pages, found.others):
                entries[:] = [
                    one
                    for one in entries
                    if one[0].key not in leased and self._scheduler.frontier.is_own(one[0].key)
                ]
            for number in take_out(found, stores, backend):
                pages += number
                await asyncio.sleep(0)
        return f"{counted(pages, 'page')} removed, and never fetched again"

    async def _queue_again(self, form: Form) -> str:
        """Pages that have left by themselves."""
        crawl = CrawlDir(options.larm_dir(self.crawler.settings))
        gone = await asyncio.to_thread(find_gone, crawl, _rule(form))
        queued, refused = await _queue(self.crawler, [entry.url for entry in gone])
        return f"{queued:,} of {counted(len(gone), 'page')} queued again{refused}"

    # a host

    def _host(self, form: Form) -> str:
        name = form.get("host", "").strip()
        if name not in self._scheduler.frontier.hosts:
            raise ConfigError(
                f"{name!r} is not a host of this crawl: expected host:port, as in the table"
            )
        return name

    async def _ordered(self, form: Form) -> tuple[str, str]:
        """The form's host, and a sentence to append to the result. With many workers, the sentence
        says that another worker has the host now, and that the host may come here later."""
        name, scheduler = form.get("host", "").strip(), self._scheduler
        worker, known = scheduler.worker, name in scheduler.frontier.hosts
        if worker is not None and not known and await asyncio.to_thread(worker.is_known_host, name):
            return name, KEPT
        return self._host(form), ""

    async def _share_host(self, name: str) -> str:
        """Keep the host's overrides for a worker that gets the host later. Returns an addition to
        the result."""
        scheduler = self._scheduler
        if scheduler.worker is None:
            return ""
        order = scheduler.frontier.control.overrides.of(name)
        kept = await asyncio.to_thread(scheduler.worker.overrides.keep_host, name, order)
        return "" if kept else UNSHARED

    async def _delay(self, form: Form) -> str:
        (name, later), keep = await self._ordered(form), _keep(form)
        control = self._scheduler.frontier.control
        if not form.get("seconds", "missing").strip():
            control.set_delay(name, None, keep=keep)
            done = f"{name} has the delay of the rules again"
        else:
            seconds = _number(form, "seconds", 0.0, MAX_DELAY)
            control.set_delay(name, seconds, keep=keep)
            done = f"{name} gets at most one request every {seconds:g} s"
            if not seconds:
                done = f"{name} has no delay beyond its robots.txt and its answers"
        return f"{done}{_until(keep)}{await self._share_host(name)}{later}"

    async def _connections(self, form: Form) -> str:
        (name, later), keep = await self._ordered(form), _keep(form)
        connections = _count(form, "connections", MAX_THREADS)
        scheduler = self._scheduler
        scheduler.frontier.control.set_connections(name, connections, keep=keep)
        scheduler.wake()
        if connections is None:
            done = f"{name} has the connections of the rules again"
        else:
            done = f"{name} gets at most {counted(connections, 'request')} at a time"
        return f"{done}{_until(keep)}{await self._share_host(name)}{later}"

    async def _pause_host(self, form: Form) -> str:
        name, later = await self._ordered(form)
        self._scheduler.frontier.control.pause_host(name)
        return f"{name} is paused{await self._share_host(name)}{later}"

    async def _resume_host(self, form: Form) -> str:
        (name, later), scheduler = await self._ordered(form), self._scheduler
        scheduler.frontier.control.resume_host(name)
        scheduler.wake()
        return f"{name} is no longer paused{await self._share_host(name)}{later}"

    async def _retry_host(self, form: Form) -> str:
        name, scheduler = self._host(form), self._scheduler
        late = scheduler.frontier.control.retry_host(name)
        scheduler.wake()
        return f"{name} is tried again now, with {counted(late, 'URL')} whose last attempt failed"

    async def _purge_host(self, form: Form) -> str:
        name, scheduler = self._host(form), self._scheduler
        gone = await self.scope.purge(name)
        scheduler.wake()
        return f"{counted(gone, 'URL')} of {name} {'was' if gone == 1 else 'were'} purged"


def _rule(form: Form) -> Rule:
    rule = Rule(form.get("kind", ""), form.get("what", ""))
    if not (rule.kind and rule.what):
        raise ConfigError("expected a kind, and a URL, pattern or host")
    return rule


def _keep(form: Form) -> bool:
    """Whether an order also applies to later runs."""
    return options.as_boolean("keep", form.get("keep") or "yes")


def _until(keep: bool) -> str:
    return "" if keep else ", until this run ends"


def _count(form: Form, name: str, most: int) -> int | None:
    """A whole number; None for the empty text, which stands for the number in the settings."""
    text = form.get(name, "missing").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= most):
        raise ConfigError(f"{name} {text!r}: expected a whole number from 1 to {most:,}")
    return int(text)


def _number(form: Form, name: str, low: float, high: float) -> float:
    text = form.get(name, "missing")
    try:
        number = float("nan" if "_" in text else text)  # Python reads 1_0 as 10
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise ConfigError(f"{name} {text!r}: expected a number from {low:g} to {high:,g}")
    return number


def operator_of(crawler: Crawler) -> OperatorExtension | None:
    """The crawl's operator; None where EXTENSIONS do not include it."""
    return crawler.get_extension(OperatorExtension)
