"""scrapy outbox: lists waiting entries of receivers; sends them, all stored pages, or dead letters.

Exit status 75: a receiver is away; 2: bad arguments, or a receiver that refuses.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import program
from larmspider.access.lists import AUTHENTICATED, EVERYONE, principal_of
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.fill import Fill, check_receiver, has_letters, stored_items, unfinished
from larmspider.crawl.reader import check_bodies
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError, TemporaryError
from larmspider.formatting import counted, printable
from larmspider.pipelines.outbox.outbox import SenderProcess
from larmspider.pipelines.outbox.receiver import Receiver
from larmspider.pipelines.outbox.spool import (
    FILL,
    FOLDER,
    RETRY,
    Cursor,
    Standing,
    read_committed,
    standings,
)
from larmspider.redaction import keep_secrets_of
from larmspider.workdir.directory import locked
from larmspider.workdir.left import changing
from larmspider.workdir.manifest import LOCK, components
from larmspider.workdir.restricted import restricted_hosts

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir

_LOOK_SECS = 0.1
_EVERY = object()
"""--retry-dead without a name."""


class Command(LarmCommand):
    stopped = "stopped; the same command continues"

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Show or send the pages that wait for receivers (SQL, search servers, ...)"

    def long_desc(self) -> str:
        return (
            "Show how many pages each receiver in ITEM_PIPELINES has taken and refused, and how"
            " many wait for it. --send sends waiting pages until all receivers have taken them, or"
            " a receiver cannot be reached; a running crawl sends them by itself. --fill sends all"
            " stored pages to a receiver that was added late, or restored from a backup."
            " --retry-dead sends dead letters again. Both may run while the crawl runs."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--send", action="store_true", help="send waiting pages")
        parser.add_argument(
            "--fill",
            metavar="NAME",
            help="send all stored pages to this receiver, such as SqlReceiver",
        )
        parser.add_argument(
            "--retry-dead",
            metavar="NAME",
            nargs="?",
            const=_EVERY,
            help="send dead letters again, of this receiver or of all",
        )
        parser.add_argument(
            "--reindex",
            action="store_true",
            help="let OpenSearch copy its documents into a new index with the current mapping",
        )
        parser.add_argument(
            "--seen-by",
            metavar="WHO",
            help="print the filter that OpenSearch needs in each query of a reader, such as"
            " user:anna,group:hr, as JSON",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}: expected --send, or none")
        chosen = {
            "--send": opts.send,
            "--fill": opts.fill is not None,
            "--retry-dead": opts.retry_dead is not None,
            "--reindex": opts.reindex,
            "--seen-by": opts.seen_by is not None,
        }
        if len(given := [name for name, is_given in chosen.items() if is_given]) > 1:
            raise ConfigError(f"{' and '.join(given)}: expected one of them")
        if opts.reindex:
            self._reindex()
            return
        if opts.seen_by is not None:
            self._print_filter(opts.seen_by)
            return
        if opts.fill is not None:
            self._send_again(self._named("--fill", opts.fill), FILL, opts)
            return
        if opts.retry_dead is not None:
            every = opts.retry_dead is _EVERY
            named = self._receivers() if every else self._named("--retry-dead", opts.retry_dead)
            self._send_again(list(named), RETRY, opts)
            return
        crawls = [part.path for part in self.open_crawl().parts]
        if opts.send:
            for crawl in crawls:
                # a crawl that runs sends by itself
                with locked(crawl / LOCK), changing(crawl, f"{FOLDER}/*"):
                    self._send(crawl)
        found = standings(crawls)
        if opts.json:
            print_json({name: one._asdict() for name, one in found.items()})
        elif not found:
            print("This crawl has no receivers (docs/stores.md).")
        else:
            for name, one in found.items():
                print(printable(_in_words(name, one)))
            for crawl in crawls:
                for name, (done, total) in unfinished(crawl).items():
                    print(
                        f"{name}: unfinished fill, {done:,} of {total:,} pages and deletes in"
                        f" {crawl}; {program.NAME} outbox --fill {name} continues it"
                    )
        if opts.send and any(one.waiting for one in found.values()):
            listed = {one.__name__ for one in self._receivers()}
            if left := [name for name, one in found.items() if one.waiting and name not in listed]:
                raise ConfigError(
                    f"{left[0]} is not in ITEM_PIPELINES, so nothing was sent to it: expected the"
                    " settings of the crawl (SCRAPY_SETTINGS_MODULE)"
                )
            raise CrawlDirError("not everything was taken: see above")

    def _receivers(self) -> Iterator[type[Receiver]]:
        assert self.settings is not None
        for component in components(self.settings, "ITEM_PIPELINES").values():
            if isinstance(component, type) and issubclass(component, Receiver):
                for name in component.settings:  # what its server says is printed
                    keep_secrets_of(name, self.settings.get(name))
                yield component

    def _named(self, option: str, name: str) -> list[type[Receiver]]:
        """Raises ConfigError for a receiver that is not in the settings."""
        found = {one.__name__: one for one in self._receivers()}
        if name not in found:
            listed = f"expected {' or '.join(found)}" if found else "it has no receivers"
            raise ConfigError(
                f"{option} {name}: no receiver of this name is in ITEM_PIPELINES: {listed}; the"
                " settings of the crawl are named by SCRAPY_SETTINGS_MODULE"
            )
        return [found[name]]

    def _send_again(
        self, receivers: Sequence[type[Receiver]], kind: str, opts: argparse.Namespace
    ) -> None:
        """Send all stored pages, or dead letters. Raises ConfigError, TemporaryError,
        CrawlDirError."""
        assert self.settings is not None
        # as in the next run of the crawl: a new receiver was not in earlier runs
        today = {name: self.settings.get(name) for one in receivers for name in one.settings}
        try:
            crawl = self.open_crawl()
            self.settings.setdict(today, priority="cmdline")
            check_bodies(crawl)
        except CrawlDirError as error:
            raise ConfigError(str(error)) from None
        sent: dict[str, dict[str, int]] = {}
        for receiver in receivers:
            parts = [
                part
                for part in crawl.parts
                if kind == FILL or has_letters(part.path, receiver.__name__)
            ]
            if parts:
                check_receiver(receiver, self.settings)
            counts = sent[receiver.__name__] = {"sent": 0, "dead": 0, "kept": 0}
            for part in parts:
                self._send_part(part, receiver, kind, counts)
        if opts.json:
            print_json(sent)
        elif not sent:
            print("ITEM_PIPELINES has no receivers (docs/stores.md).")
        else:
            for name, counts in sent.items():
                print(_again_in_words(name, counts))
        if kind == RETRY and any(one["dead"] or one["kept"] for one in sent.values()):
            raise CrawlDirError("dead letters are left: see above, and outbox/*.dead.log")

    def _send_part(
        self, part: CrawlDir, receiver: type[Receiver], kind: str, counts: dict[str, int]
    ) -> None:
        assert self.settings is not None
        say = partial(print, file=sys.stderr, flush=True)
        with (
            changing(part.path, f"{FOLDER}/*"),
            Fill(part, self.settings, receiver, kind, lambda text: say(printable(text))) as fill,
        ):
            urls = fill.take_letters() if kind == RETRY else None
            with stored_items(part, self.settings, urls) as items:
                if urls is None:
                    fill.send_all(items)
                else:
                    counts["kept"] += fill.send_letters(items, urls)
            counts["sent"] += fill.sent
            counts["dead"] += fill.dead

    def fail(self, error: LarmspiderError) -> None:
        super().fail(error)
        if isinstance(error, TemporaryError):
            self.exitcode = 75

    def _reindex(self) -> None:
        assert self.settings is not None
        for part in self.open_crawl().parts:
            with locked(part.path / LOCK):
                pass  # no crawl sends meanwhile
        for one in self._receivers():
            receiver = one.from_settings(self.settings)
            try:
                if done := receiver.reindex():
                    print(printable(f"{one.__name__}: {done}"))
            finally:
                receiver.close()

    def _print_filter(self, who: str) -> None:
        """Raises ConfigError, CrawlDirError."""
        from larmspider.web.readers import Readers  # with aiohttp: 0.2 s

        assert self.settings is not None
        named = frozenset(principal_of(one) for one in who.split(",") if one.strip())
        named |= {EVERYONE, AUTHENTICATED} if named - {EVERYONE} else {EVERYONE}
        groups = [one.removeprefix("group:") for one in named if one.startswith("group:")]
        crawls = [part.path for part in self.open_crawl().parts]
        restricted = restricted_hosts(crawls, self.settings)
        access = Readers.from_settings(self.settings).access(restricted, groups, named)
        found = (one.seen_by(crawls, access) for one in self._receivers())
        if (query := next(filter(None, found), None)) is None:
            raise ConfigError("--seen-by: no receiver of this crawl knows access lists")
        print_json(query)

    def _send(self, crawl: Path) -> None:
        """Send until nothing is left, or nothing more can be sent. Raises ConfigError."""
        assert self.settings is not None
        directory, committed = crawl / FOLDER, read_committed(crawl / FOLDER)
        for receiver in self._receivers():
            receiver.from_settings(self.settings)
            sender = SenderProcess(receiver, self.settings, directory)
            sender.may_send(committed)
            sender.finish()
            try:
                begun = time.time()
                while True:
                    at = Cursor.read(directory, sender.name) or Cursor()
                    if at.offset >= committed.offset and not at.left:
                        break
                    sender.keep_running()
                    if at.trouble and at.since >= begun:
                        break
                    time.sleep(_LOOK_SECS)
            finally:
                sender.close()


def _again_in_words(name: str, counts: Mapping[str, int]) -> str:
    pages = counted(counts["sent"], "page or delete", "pages and deletes")
    refused = f", {counted(counts['dead'], 'dead letter')}" if counts["dead"] else ""
    kept = counts["kept"]
    left = f"; {counted(kept, 'dead letter')} of pages that are no longer stored" if kept else ""
    return f"{name}: {pages} sent{refused}{left}"


def _in_words(name: str, one: Standing) -> str:
    waiting = counted(one.waiting, "page or delete waits", "pages and deletes wait")
    refused = f", {counted(one.dead, 'dead letter')}" if one.dead else ""
    trouble = f": {one.trouble}" if one.trouble else ""
    return f"{name}: {one.sent:,} taken{refused}; {waiting}{trouble}"
