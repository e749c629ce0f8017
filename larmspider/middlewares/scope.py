"""Scope: the part of the web that is crawled, LARM's -restrict.

-a restrict='https?://[^/]*\\.example/.*'      every host below .example
(nothing)                                     the hosts of the seeds, http and https alike; of seeds
                                              that are files, or lie on a file server, their folders
-a exclude='https?://wiki/archive/.*'         and nothing below this folder

Files are in scope below LARM_FILE_ROOTS only, whatever ``restrict`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.file_urls import FileRoots, is_file
from larmspider.urls.normalizer import normalizer_from_settings
from larmspider.urls.patterns import Pattern, PatternSet, compile_pattern
from larmspider.urls.schemes import is_source
from larmspider.urls.seeds import read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

NO_FILES = FileRoots()


class ScopeFilter(UrlFilter):
    """Rejects URLs that do not match ``restrict`` as a whole. Without ``restrict`` it rejects URLs
    whose host and port are not in ``hosts``, and files that are not below one of ``folders``. In
    both cases it rejects files that are not below ``roots``, and every URL that matches a pattern
    of ``exclude`` as a whole."""

    name = "scope"
    remembers = True

    def __init__(
        self,
        restrict: Pattern | None,
        hosts: Iterable[str] = (),
        folders: Iterable[str] = (),
        roots: FileRoots = NO_FILES,
        exclude: Sequence[str] = (),
    ) -> None:
        self.restrict = restrict
        self.exclude = PatternSet(exclude, name="exclude")
        self.hosts = frozenset(hosts)
        self.folders = tuple(folders)
        self.roots = roots

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls.for_seeds(settings, read_seeds(options.text(settings, "LARM_START")))

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        return cls.for_seeds(crawler.settings, getattr(crawler.spider, "start_urls", ()))

    @classmethod
    def for_seeds(cls, settings: BaseSettings, seeds: Iterable[str]) -> Self:
        """The filter for a crawl from ``seeds``, whose hosts are the scope without
        LARM_RESTRICT."""
        restrict = options.text(settings, "LARM_RESTRICT")
        roots = FileRoots.from_settings(settings)
        exclude = options.words(settings, "LARM_EXCLUDE")
        if restrict:
            pattern = compile_pattern(restrict, name="restrict")
            return cls(pattern, roots=roots, exclude=exclude)
        normalize = normalizer_from_settings(settings)
        starts = [normalize(seed) for seed in seeds]
        folders = [folder for seed in starts if is_source(seed) for folder in _folders_of(seed)]
        hosts = {_host(seed) for seed in starts if not is_source(seed)}
        if not starts:
            raise ConfigError(
                "The scope is unknown: give -a restrict=REGEX (setting LARM_RESTRICT),"
                " or seeds (-a start=URL, or start_urls in a spider) whose hosts are the scope"
            )
        return cls(None, hosts, folders, roots, exclude)

    def restrict_to(self, pattern: Pattern) -> None:
        """Change the scope."""
        self.restrict = pattern
        self._verdict.clear()

    def reject_reason(self, url: str) -> str | None:
        if (reason := self._outside(url)) is not None:
            return reason
        found = self.exclude.match(url) if self.exclude else None
        return None if found is None else f"matches exclude {found}"

    def _outside(self, url: str) -> str | None:
        if is_source(url):
            if is_file(url) and (why := self.roots.why_not(url)):
                return why
            if self.restrict is None:
                inside = url.startswith(self.folders) or f"{url}/" in self.folders
                return None if inside else "not below a seed's folder"
        if self.restrict is not None:
            if self.restrict.fullmatch(url):
                return None
            return f"does not match restrict {self.restrict.text}"
        if _host(url) in self.hosts:
            return None
        return f"host {_host(url)} is not a seed's host"


def _folders_of(seed: str) -> list[str]:
    """``/srv/share`` may be a folder that is written without its slash; ``/srv/a.html`` is not."""
    above, _, name = seed.rpartition("/")
    return [f"{above}/"] if not name else [f"{seed}/"] + ([f"{above}/"] if "." in name else [])


def _host(normalized: str) -> str:
    """Host and port of a canonical URL, where default ports are absent: http and https alike."""
    start = normalized.index("//") + 2
    end = normalized.find("/", start)
    return normalized[start:] if end < 0 else normalized[start:end]
