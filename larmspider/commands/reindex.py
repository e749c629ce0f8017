"""scrapy reindex: makes the search index of a crawl anew, beside the old one."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from larmspider import options
from larmspider.command import LarmCommand, print_json
from larmspider.extraction.process import Readers
from larmspider.formatting import counted, doing
from larmspider.index.rebuild import finish, rebuild
from larmspider.index.schema import SCHEMA_VERSION, STEMMERS
from larmspider.index.version import has_index, outdated
from larmspider.pipelines.search_index import from_page_files
from larmspider.urls.canonical import Forms
from larmspider.workdir.directory import locked
from larmspider.workdir.manifest import LOCK

_SAID_PAGES = 100  # between two lines of progress


class Command(LarmCommand):
    def short_desc(self) -> str:
        return "Make the search index of a crawl anew, if it is of an earlier version"

    def long_desc(self) -> str:
        return (
            "Make the search index of a crawl anew, if it is of an earlier version or gone. The old"
            " one stays until the new one is complete. No crawl may write there meanwhile."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--from-page-files",
            action="store_true",
            help="read all pages again, whatever the version; link texts are kept. What only a"
            " server's headers said (charset, noindex, date) is then not known",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        crawl = self.open_crawl()
        made = {}
        for part in crawl.parts:
            index, again = part.index_dir, opts.from_page_files
            with locked(part.path / LOCK):
                finish(index)
                if again or outdated(index) or not has_index(index):
                    made[str(part.path)] = self._rebuild(part.path, crawl.forms, again)
        if opts.json:
            print_json({"version": SCHEMA_VERSION, "pages": made})
            return
        for path, pages in made.items():
            print(f"{path}: the search index is new, {counted(pages, 'page')}")
        if not made:
            print(f"The search index has version {SCHEMA_VERSION} already: nothing to do")

    def _rebuild(self, path: Path, forms: Callable[[str], Forms], all_again: bool) -> int:
        assert self.settings is not None
        with (
            doing(f"Making the search index of {path} anew") as say,
            Readers.from_settings(self.settings) as readers,
        ):
            return rebuild(
                path / "index",
                partial(from_page_files, path, forms, readers),
                stemmer=options.choice(self.settings, "LARM_INDEX_STEMMER", STEMMERS),
                from_old=not all_again,
                heap_bytes=options.integer(self.settings, "LARM_INDEX_HEAP_BYTES", minimum=1),
                progress=lambda done, total: say(done, total) if done % _SAID_PAGES == 0 else None,
            )
