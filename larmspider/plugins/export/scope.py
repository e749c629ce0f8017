"""Writes the seeds and the scope of a crawl for Apache Nutch and StormCrawler (docs/export.md).

    export_scope(crawl.directory, Path("scope"))    # Scope(seeds=2, left=["smb://nas/share/"], ...)

    scope/seeds.txt             a URL a line
    scope/regex-filters.txt     for their RegexURLFilter: each line is + or - and an expression of
                                java.util.regex; the first that a URL contains decides
    scope/hosts.properties      copies of the crawl's own rules, if it has some
    scope/known_paths.txt

The expressions are for URLs in canonical form.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.urls.schemes import is_source

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir

SEEDS, FILTERS = "seeds.txt", "regex-filters.txt"


class Scope(NamedTuple):
    """``left``: seeds that are no web pages."""

    seeds: int
    left: list[str]
    files: list[str]


def export_scope(crawl: CrawlDir, folder: Path, *, force: bool = False) -> Scope:
    """Write into ``folder``, which is made. Raises ConfigError if it has files and not ``force``,
    or if it cannot be written."""
    seeds = [seed for seed in crawl.seeds if not is_source(seed)]
    if not seeds:
        raise ConfigError("the crawl has no seeds that are web pages: there is no scope to export")
    lines = list(_lines(crawl, seeds))
    try:
        folder.mkdir(exist_ok=True)
        if not force and any(folder.iterdir()):
            raise ConfigError(f"{folder} has files; --force replaces them")
        replace_file(folder / SEEDS, "".join(f"{seed}\n" for seed in seeds).encode())
        replace_file(folder / FILTERS, "".join(f"{line}\n" for line in lines).encode())
        for path in crawl.rules.values():
            shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from None
    left = [seed for seed in crawl.seeds if is_source(seed)]
    return Scope(len(seeds), left, [SEEDS, FILTERS, *(path.name for path in crawl.rules.values())])


def _lines(crawl: CrawlDir, seeds: list[str]) -> Iterator[str]:
    settings = crawl.settings
    yield "# + fetch, - skip: the first expression that is found in a URL decides"
    for text in settings.get("LARM_EXCLUDE") or ():
        yield f"-{_java(text)}"
    if most := settings.get("URLLENGTH_LIMIT"):
        yield f"-.{{{int(most) + 1},}}"
    if restrict := settings.get("LARM_RESTRICT"):
        yield f"+{_java(restrict)}"
    else:
        for host in sorted({urlsplit(crawl.forms(seed).normalized).netloc for seed in seeds}):
            yield f"+(?i)\\Ahttps?://{re.escape(host)}(?:/|\\z)"
    yield "-."


def _java(pattern: str) -> str:
    """An expression for java.util.regex that finds what ``pattern`` matches as a whole."""
    named = re.sub(r"\(\?P=(\w+)\)", r"\\k<\1>", pattern.replace("(?P<", "(?<"))
    return f"(?is)\\A(?:{named})\\z"
