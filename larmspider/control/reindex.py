"""Rebuilds the search index of a directory from the stored pages, under its lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.access.sources import Sources
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.language import Languages, languages_in
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.formatting import counted, duration
from larmspider.index.rebuild import Progress, finish, rebuild
from larmspider.index.schema import STEMMERS
from larmspider.index.unreached import UnreachedLog
from larmspider.index.version import has_index
from larmspider.index.writer import heap_bytes_of, seal_index
from larmspider.pipelines.reextract import link_texts, linking_pages, missed_pages, reextracted
from larmspider.workdir.pushed import stored_access

_PROGRESS_SECS = 5.0
_RIGHTS = ("LARM_ACCESS_RULES", "LARM_ACCESS_SENT", "LARM_FILE_ROOTS", "LARM_PUSH")

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.crawl.reader import CrawlDir


def reindex(
    crawl: CrawlDir,
    settings: BaseSettings,
    progress: Progress,
    wanted: Callable[[str], bool] = lambda _: True,
    *,
    restricted: Collection[str],
) -> int:
    """Build a new index from pages with a ``wanted`` URL. Returns the number of its pages.
    ``restricted``: patterns of hosts whose link texts are kept only for pages of the same host.
    Raises ConfigError, CrawlDirError; then the old index stays."""
    with (
        Readers.from_settings(settings) as readers,
        closing(Languages.from_settings(settings)) as speaking,
        Simhasher() as simhasher,
    ):
        finish(crawl.index_dir)
        only = languages_in(settings, "LARM_INDEX_LANGUAGES")
        again = reextracted(crawl.path, crawl.forms, readers, speaking, only, wanted)
        number = rebuild(
            crawl.index_dir,
            again,
            partial(link_texts, crawl.path, crawl.forms),
            stemmer=options.choice(settings, "LARM_INDEX_STEMMER", STEMMERS),
            heap_bytes=heap_bytes_of(settings),
            simhashes=simhasher.submit,
            progress=progress,
            restricted=restricted,
            pages=partial(linking_pages, crawl.path, crawl.forms),
            sources=_sources_of(crawl, settings),
        )
    restore_unreached(crawl)
    return number


def _sources_of(crawl: CrawlDir, settings: BaseSettings) -> Sources:
    """The sources of rights. A setting that is not set here has the crawl's own value, so that a
    command without these settings makes no page public."""
    whole, was = settings.copy(), crawl.settings
    for name in _RIGHTS:
        if options.typed(settings, name) == options.defaults()[name] and name in was:
            whole.set(name, was[name], priority="cmdline")
    return Sources.from_settings(whole, partial(stored_access, crawl.path))


def restore_unreached(crawl: CrawlDir) -> None:
    """If no readable file lists the pages that were not reached, write the list from the frontier.
    Raises CrawlDirError, OSError."""
    marks = UnreachedLog(crawl.index_dir)
    if marks.is_new:
        for missed in missed_pages(crawl.path, crawl.forms):
            marks.missed(*missed)
        marks.write()
        seal_index(crawl.index_dir)


class RebuildLog:
    """Shows the progress of a rebuild every 5 s."""

    def __init__(self, directory: Path, say: Callable[[str], object]) -> None:
        self._say = say
        self._began = self._said = time.monotonic()
        beside = ", beside the old one" if has_index(directory) else ""
        say(f"Rebuilding the search index {directory}{beside}")

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._said >= _PROGRESS_SECS:
            self._said = now
            left = (now - self._began) / done * max(0, total - done)
            self._say(
                f"Rebuilding the search index: {done:,} of {counted(total, 'page')},"
                f" about {duration(left)} left"
            )
