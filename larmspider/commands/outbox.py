"""scrapy outbox: what waits for receivers, and sending it while no crawl runs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from larmspider.command import LarmCommand, print_json
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import counted, printable
from larmspider.pipelines.outbox.outbox import SenderProcess
from larmspider.pipelines.outbox.receiver import Receiver
from larmspider.pipelines.outbox.spool import (
    FOLDER,
    Cursor,
    Standing,
    read_committed,
    standings,
)
from larmspider.redaction import keep_secrets_of
from larmspider.workdir.directory import locked
from larmspider.workdir.manifest import LOCK, components

_LOOK_SECS = 0.1


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Show what waits for receivers (SQL, search servers, ...); send it"

    def long_desc(self) -> str:
        return (
            "Show of each receiver in ITEM_PIPELINES what it has taken, what it has refused and"
            " what waits for it. With --send, what waits is sent until all have taken it, or one"
            " cannot be reached. A crawl that runs sends by itself."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--send", action="store_true", help="send what waits")
        parser.add_argument(
            "--reindex",
            action="store_true",
            help="let OpenSearch copy what it has into a new index with the mapping of now",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise ConfigError(f"unexpected argument {args[0]!r}: expected --send, or none")
        if opts.reindex:
            self._reindex()
            return
        crawls = [part.path for part in self.open_crawl().parts]
        if opts.send:
            for crawl in crawls:
                with locked(crawl / LOCK):  # a crawl that runs sends by itself
                    self._send(crawl)
        found = standings(crawls)
        if opts.json:
            print_json({name: one._asdict() for name, one in found.items()})
        elif not found:
            print("This crawl has no receivers (docs/stores.md).")
        else:
            for name, one in found.items():
                print(printable(_in_words(name, one)))
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

    def _send(self, crawl: Path) -> None:
        """Until all is sent, or nothing can be sent any more. Raises ConfigError."""
        assert self.settings is not None
        directory, committed = crawl / FOLDER, read_committed(crawl / FOLDER)
        for receiver in self._receivers():
            receiver.from_settings(self.settings)
            sender = SenderProcess(receiver, self.settings, directory)
            sender.may_send(committed)
            try:
                begun = time.time()
                while (at := Cursor.read(directory, sender.name) or Cursor()).offset < (
                    committed.offset
                ):
                    sender.keep_running()
                    if at.trouble and at.since >= begun:
                        break
                    time.sleep(_LOOK_SECS)
            finally:
                sender.close()


def _in_words(name: str, one: Standing) -> str:
    waiting = counted(one.waiting, "page or delete waits", "pages and deletes wait")
    refused = f", {counted(one.dead, 'dead letter')}" if one.dead else ""
    trouble = f": {one.trouble}" if one.trouble else ""
    return f"{name}: {one.sent:,} taken{refused}; {waiting}{trouble}"
