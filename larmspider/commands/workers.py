"""scrapy workers -n N: a crawl by several processes on this machine, which share it through Redis.

Exit status 0: all workers ended, or were stopped by a signal. 1: a worker failed, was stopped by a
second signal or could not be kept running, or nothing is stored. 2: bad arguments, settings or
LARM_DIR; nothing was begun. 75: Redis is unavailable, or a worker was restarted too often; run the
same command again.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from scrapy.commands import ScrapyCommand
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.misc import load_object

from larmspider import options, program
from larmspider.command import print_json
from larmspider.crawl.worker_dirs import CrawlOfWorkers, open_crawl
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError, TemporaryError
from larmspider.extensions.preflight import (
    asked_refresh,
    check,
    check_components,
    check_shared_refresh,
    settle_canonical_rules,
)
from larmspider.files import is_locked
from larmspider.formatting import counted
from larmspider.frontier.storage.records import UrlState
from larmspider.status.totals import Totals
from larmspider.workdir import worker_name
from larmspider.workdir.directory import REDIS_DIR, ClusterDirectory
from larmspider.workdir.manifest import LOCK, MANIFEST, WORKER_LOG
from larmspider.workers.outcome import MONITOR_LOG, Outcome, Progress
from larmspider.workers.supervisor import TEMPORARY, StopSignals, Supervisor, WorkerProcess

SPIDER = "intranet"
MAX_WORKERS = 256
_BESIDE = "LARM_EXTRACTION_BESIDE"


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False
    _begun = False
    """Whether workers were started."""

    def syntax(self) -> str:
        return "[options] [SPIDER]"

    def short_desc(self) -> str:
        return "Crawl with several processes on this machine"

    def long_desc(self) -> str:
        return (
            "Crawl with several processes on this machine, each with a directory of its own in"
            " LARM_DIR. They share their queues through Redis: the one that REDIS_URL names, or a"
            " private redis-server that runs as long as they do. Arguments and settings are the"
            f" same as for '{program.NAME} crawl intranet', or for the given SPIDER."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-n", nargs="?", const="", metavar="N",
            help=f"number of processes (default {os.cpu_count() or 1}, one per processor)",
        )  # fmt: skip
        parser.add_argument(
            "-a", dest="spargs", action="append", default=[], metavar="NAME=VALUE",
            help="set spider argument (may be repeated)",
        )  # fmt: skip
        parser.add_argument(
            "--file", metavar="FILE",
            help="a crawl file (docs/server.md); -a and -s override it",
        )  # fmt: skip
        parser.add_argument(
            "--rebuild", action="store_true",
            help="Redis has lost the crawl: fill it from the workers' directories in LARM_DIR."
            " Run it on each machine, in any order; no worker may run meanwhile",
        )  # fmt: skip
        parser.add_argument(
            "--complete", action="store_true",
            help="with --rebuild, once: the directories of all machines are in, including this"
            " machine's; workers may continue",
        )  # fmt: skip
        parser.add_argument(
            "--json", action="store_true", help="with --rebuild: print what was done as JSON"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if opts.file is not None:
            from larmspider.server.runs.run_file import settings_of_run

            try:
                for name, value in settings_of_run(Path(opts.file)).items():
                    self.settings.set(name, value, "project")
            except ConfigError as refused:
                print(f"{program.NAME} workers: {refused}", file=sys.stderr)
                raise SystemExit(2) from None
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1:
            raise UsageError(f"expected at most one spider, such as: {program.NAME} workers -n 4")
        try:
            arguments = arglist_to_dict(opts.spargs)
        except ValueError:
            raise UsageError("Invalid -a value, use -a NAME=VALUE", print_help=False) from None
        try:
            if unknown := next((word for word in args if word.startswith("-")), None):
                raise ConfigError(f"unknown option {unknown} (see --help)")
            if opts.rebuild:
                if opts.n is not None:
                    raise ConfigError("--rebuild: expected no -n with it: it starts no worker")
                self.exitcode = self._rebuild(args, arguments, opts)
                return
            if opts.complete or opts.json:
                raise ConfigError("--complete and --json: expected --rebuild with them")
            given = (os.cpu_count() or 1) if opts.n is None else opts.n
            opts.n = options.as_integer("-n", given, minimum=1, maximum=MAX_WORKERS)
            self.exitcode = self._crawl(args[0] if args else SPIDER, arguments, opts)
        except LarmspiderError as error:
            from larmspider.cluster.redis_server import StartStopped

            print(f"{program.NAME} workers: {error}", file=sys.stderr)
            if isinstance(error, StartStopped):
                self.exitcode = 0
                return
            refused = not self._begun and isinstance(error, (ConfigError, CrawlDirError))
            temporary = TEMPORARY if isinstance(error, TemporaryError) else 1
            self.exitcode = 2 if refused else temporary
        except KeyError as unknown:
            print(f"{program.NAME} workers: {unknown.args[0]}", file=sys.stderr)
            self.exitcode = 2
        except KeyboardInterrupt:  # before StopSignals are heard, or after them
            begun = "" if self._begun else " before anything was begun"
            print(f"{program.NAME} workers: stopped{begun}", file=sys.stderr)
            self.exitcode = int(self._begun)

    def _crawl(self, spider: str, arguments: dict[str, str], opts: argparse.Namespace) -> int:
        # imported here, 0.1 s: Scrapy imports the modules of all commands for each command
        from larmspider.cluster.joining import SharedCrawl
        from larmspider.cluster.redis_server import PrivateRedis, find_program

        assert self.settings is not None
        settings = self.settings
        if opts.logfile:
            raise ConfigError(f"--logfile: each worker logs to LARM_DIR/<worker>/{WORKER_LOG}")
        if options.text(settings, "LARM_WORKER"):
            raise ConfigError(
                f"LARM_WORKER names a single worker; `{program.NAME} workers` names its workers"
                " itself"
            )
        root = options.crawl_root(settings)
        private = PrivateRedis(root / REDIS_DIR)
        if is_private := not options.many_workers(settings):
            find_program()
            settings.set("REDIS_URL", private.url, priority="cmdline")
        crawler = self._as_each(spider, arguments)
        directory = ClusterDirectory.from_crawler(crawler)
        directory.check()
        private.fresh = bool(directory.fresh)
        asked, _ = asked_refresh(crawler.settings)
        if asked and is_private and not (root / MANIFEST).exists():
            raise ConfigError(
                f"refresh={asked}: expected a crawl that has ended in LARM_DIR={root}, there is"
                " none"
            )
        if not is_private:
            shared = SharedCrawl.of(crawler)
            if directory.fresh:
                shared.refuse_to_wipe(directory.fresh)
                shared.wipe()
            else:
                shared.refuse_other(crawler)
                check_shared_refresh(crawler)
        with ExitStack() as stack, ExitStack() as unchanging:
            options.writable_dir(root)
            if is_locked(root / LOCK):
                _say(f"Waiting for a command that changes the crawl in {root}")
            unchanging.enter_context(directory.unchanging())
            stop = stack.enter_context(StopSignals())
            if directory.fresh:
                directory.clear()
            if is_private:
                private.stopped = lambda: bool(stop.count)
                stack.enter_context(private)
                settings.set("REDIS_URL", private.url, priority="cmdline")
                shared = SharedCrawl(settings, crawler.spidercls.name)
                shared.refuse_other_partitions()
                shared.expire_ended(root)
                check_shared_refresh(crawler)
            arguments.pop("fresh", None)
            command = self._command(spider, arguments, opts, private.url if is_private else "")
            supervisor = self._supervisor(
                root, command, opts.n, stop, private.tend if is_private else str
            )
            unchanging.close()  # lets the workers start
            names = [worker.name for worker in supervisor.workers]
            before = _counted(root, names)
            self._begun, began = True, time.time()
            supervisor.run()
            stop.end_at_once()
            if not (root / MANIFEST).exists():  # all were refused, or stopped before they began
                return supervisor.exit_status or int(not stop.count)
            crawl = open_crawl(root, settings=settings)
            assert isinstance(crawl, CrawlOfWorkers)
            refreshed = _counted(root, names).since(before) if asked else None
            outcome = Outcome.of(crawl, names, began, refreshed)
        with suppress(OSError):  # as in _say()
            print("\n".join(outcome.lines()), flush=True)
        nothing = not stop.count and not outcome.total[UrlState.STORED]
        return supervisor.exit_status or int(nothing)

    def _rebuild(self, args: list[str], arguments: dict[str, str], opts: argparse.Namespace) -> int:
        from larmspider.workers.rebuilding import rebuild

        if args or arguments:
            raise ConfigError("--rebuild takes neither a spider nor -a: crawl.json has them")
        assert self.settings is not None
        options.settle_scrapys(self.settings)
        done = rebuild(self.settings, complete=opts.complete, say=_say)
        with suppress(OSError):
            if opts.json:
                print_json(done.as_json())
            else:
                print("\n".join(done.lines()), flush=True)
        return 0

    def _supervisor(
        self,
        root: Path,
        command: list[str],
        number: int,
        stop: StopSignals,
        beside: Callable[[], str],
    ) -> Supervisor:
        assert self.settings is not None
        names = worker_name.free_names(root, number)
        _say(f"Starting {counted(number, 'worker')} in {root}: {', '.join(names)}")
        return Supervisor(
            [
                WorkerProcess(
                    name, [*command, "-s", f"LARM_WORKER={name}"], root / name / WORKER_LOG
                )
                for name in names
            ],
            Progress({name: root / name / MONITOR_LOG for name in names}),
            options.seconds(self.settings, "LARM_MONITOR_SECS", minimum=0.1),
            _say,
            stop,
            beside,
        )

    def _as_each(self, spider: str, arguments: dict[str, str]) -> Crawler:
        """A crawler as each worker has it, checked here so that a refusal comes once."""
        assert self.settings is not None
        options.settle_scrapys(self.settings)
        crawler = Crawler(get_spider_loader(self.settings).load(spider), self.settings)
        crawler.stats = load_object(self.settings["STATS_CLASS"])(crawler)
        crawler.spider = crawler.spidercls.from_crawler(crawler, **arguments)
        settle_canonical_rules(crawler.settings)
        check(crawler)
        check_components(crawler)
        return crawler

    def _command(
        self,
        spider: str,
        arguments: dict[str, str],
        opts: argparse.Namespace,
        redis_url: str,
    ) -> list[str]:
        """The command of each worker, without its name."""
        from larmspider.extraction.processes.page_process import AUTO, OFF, cores

        command = [sys.executable, "-m", "scrapy", "crawl", spider]
        if opts.file is not None:
            command += ["--file", opts.file]
        for name, value in arguments.items():
            command += ["-a", f"{name}={value}"]
        for setting in opts.set:
            command += ["-s", setting]
        assert self.settings is not None
        run = options.text(self.settings, "LARM_REFRESH_RUN") or secrets.token_hex(8)
        own = {"LARM_FRESH": "", "LOG_FILE": "", "LARM_REFRESH_RUN": run}
        if redis_url:
            own["REDIS_URL"] = redis_url
        if 2 * opts.n > cores() and options.text(self.settings, _BESIDE) == AUTO:
            own[_BESIDE] = OFF  # the workers' own threads have the cores
        for name, value in own.items():
            command += ["-s", f"{name}={value}"]
        if opts.loglevel:
            command += ["-L", opts.loglevel]
        return [*command, "--nolog"] if opts.nolog else command


def _counted(root: Path, names: Iterable[str]) -> Totals:
    """The counts of these workers in all their runs."""
    return Totals.together(Totals.read(root / name) for name in names)


def _say(line: str) -> None:
    with suppress(OSError):  # a closed terminal: workers are still to be stopped in order
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", file=sys.stderr, flush=True)
