"""scrapy reindex, and scrapy crawl intranet -a refresh=index: rebuilds the search index of a crawl
from its page files, beside the old one. No request is made."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from larmspider import options, program
from larmspider.command import LarmCommand, print_json
from larmspider.control.reindex import RebuildLog, reindex
from larmspider.crawl.reader import check_bodies
from larmspider.formatting import counted, doing
from larmspider.index.rebuild import Progress
from larmspider.index.schema import INDEX_FORMAT
from larmspider.workdir.directory import locked, write_manifest
from larmspider.workdir.left import changing
from larmspider.workdir.manifest import LOCK
from larmspider.workdir.restricted import note_restricted

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir

_SAID_PAGES = 100  # between two lines of progress
_READ_BY = (
    *("LARM_FIELDS", "LARM_FACETS", "LARM_LANGUAGES", "LARM_INDEX_LANGUAGES"),
    *("LARM_SECOND_READER", "LARM_OCR"),
)
"""Settings by which the new index may have other pages, texts or fields than the old one."""


class Command(LarmCommand):
    def short_desc(self) -> str:
        return "Rebuild the search index of a crawl from its page files"

    def long_desc(self) -> str:
        return (
            "Read all stored pages again with the current readers and rules, and rebuild the search"
            " index; no request is made. Searches use the old index until the new one is complete."
            " No crawl may write there meanwhile. The same as"
            f" {program.NAME} crawl intranet -a refresh=index."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        # the option is always on now
        parser.add_argument("--from-page-files", action="store_true", help=argparse.SUPPRESS)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl = self.open_crawl()
        check_bodies(crawl)
        restricted = crawl.restricted(self.settings)
        made = {str(part.path): self._rebuild(part, restricted) for part in crawl.parts}
        if opts.json:
            print_json({"version": INDEX_FORMAT, "pages": made})
            return
        for path, pages in made.items():
            print(f"{path}: search index rebuilt, {counted(pages, 'page')}")

    def _rebuild(self, crawl: CrawlDir, restricted: Collection[str]) -> int:
        settings = self.settings
        assert settings is not None
        with locked(crawl.path / LOCK), changing(crawl.path, "index/*"):
            said = {name: options.typed(settings, name) for name in _READ_BY}
            for name, was in crawl.settings.items():
                if said.get(name, was) != was:
                    print(f"{name}={said[name]}: it was {was}", file=sys.stderr)
            manifest = dict(crawl.manifest)
            note_restricted(manifest, restricted)
            if manifest != crawl.manifest:  # before the new index has these hosts' link texts less
                write_manifest(crawl.path, manifest)
            with _progress(crawl) as progress:
                pages = reindex(crawl, settings, progress, restricted=restricted)
            known = manifest.get("settings", {})
            write_manifest(crawl.path, {**manifest, "settings": {**known, **said}})
            return pages


@contextmanager
def _progress(crawl: CrawlDir) -> Iterator[Progress]:
    """Show the progress: on a terminal one line that changes, else a line every 5 s."""
    if not sys.stderr.isatty():
        yield RebuildLog(crawl.index_dir, say=partial(print, file=sys.stderr, flush=True))
        return
    with doing(f"Rebuilding the search index of {crawl.path}") as say:
        yield lambda done, total: say(done, total) if done % _SAID_PAGES == 0 else None
