"""Records which schema an index was written with, so that no program misreads it.

``larmspider-index.json`` stands beside the index: ``{"schema": 1, "stemmer": "english"}``, and
which hosts were restricted when its link texts were taken in (link_access.py). An index
of another version is refused with a message that says what to do; rebuild.py makes it anew::

    open_index(Path("crawl/index"))
    # CrawlDirError: crawl/index: the search index has version 1, this larmspider needs 9: ...
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import tantivy

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import make_folder, replace_file, why_no_lock
from larmspider.index.schema import SCHEMA_VERSION, STEMMERS, build_schema, register_analyzers

META_NAME = "larmspider-index.json"
_SEARCHED = frozenset((2, 3, 5, 6, 7, 8, SCHEMA_VERSION))
"""Versions that can be searched; only the newest is written. The words of version 2 are not
normalized."""


def has_index(directory: Path) -> bool:
    """Whether ``directory`` has an index that is complete."""
    return (directory / META_NAME).exists() and (directory / "meta.json").exists()


def outdated(directory: Path) -> bool:
    """Whether ``directory`` has an index of an earlier version, which is to be made anew."""
    version = version_of(directory)
    return version is not None and version < SCHEMA_VERSION


def version_of(directory: Path) -> int | None:
    """The version of an index; None where there is none, or its record cannot be read."""
    version = _meta(directory).get("schema")
    return version if isinstance(version, int) else None


def stemmer_of(directory: Path) -> str | None:
    """The stemmer of an index; None as in `version_of`."""
    stemmer = _meta(directory).get("stemmer")
    return stemmer if stemmer in STEMMERS else None


def restricted_of(directory: Path) -> tuple[str, ...] | None:
    """Patterns of the hosts that were restricted when the link texts of an index were taken in, all
    of them (link_access.py); None where that was not noted."""
    noted = _meta(directory).get("restricted")
    return tuple(map(str, noted)) if isinstance(noted, list) else None


def note_restricted_of(directory: Path, restricted: Iterable[str]) -> None:
    """Let an index know what `restricted_of` returns. Raises CrawlDirError."""
    record = {**_meta(directory), "restricted": sorted(restricted)}
    try:
        replace_file(directory / META_NAME, json.dumps(record).encode(), synced=True)
    except OSError as error:
        raise CrawlDirError(f"{directory}: cannot write {META_NAME}: {error}") from error


def _meta(directory: Path) -> dict[str, Any]:
    try:
        meta = json.loads((directory / META_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return meta if isinstance(meta, dict) else {}


def open_index(directory: Path) -> tuple[tantivy.Index, str]:
    """An existing index and its stemmer. Raises CrawlDirError for none, or another version."""
    stemmer = _read_meta(directory / META_NAME, _SEARCHED)
    version = version_of(directory) or SCHEMA_VERSION
    try:
        index = tantivy.Index.open(str(directory))
    except (ValueError, OSError) as error:
        raise _unopened(directory, error) from error
    return _prepare(index, stemmer, version), stemmer


def create_index(directory: Path, stemmer: str) -> tantivy.Index:
    """Create the index, or open one that exists with the same ``stemmer``.

    Raises ConfigError for an unknown stemmer, CrawlDirError for an index that differs.
    """
    if stemmer not in STEMMERS:
        raise ConfigError(
            f"stemmer {stemmer!r} is unknown; expected one of {', '.join(sorted(STEMMERS))}"
        )
    meta = directory / META_NAME
    make_folder(directory)
    if tantivy.Index.exists(str(directory)):
        written = _read_meta(meta)
        if written != stemmer:
            raise CrawlDirError(
                f"{directory}: the index is stemmed for {written}, not for {stemmer}: "
                f"use {written}, or crawl again into an empty directory"
            )
    else:
        # synced before the index exists, for an index without it is refused
        record = {"schema": SCHEMA_VERSION, "stemmer": stemmer}
        replace_file(meta, json.dumps(record).encode())
    try:
        if not tantivy.Index.exists(str(directory)):
            _create(directory)
        index = tantivy.Index(build_schema(), path=str(directory))
    except (ValueError, OSError) as error:
        raise _unopened(directory, error) from error
    return _prepare(index, stemmer, SCHEMA_VERSION)


def _unopened(directory: Path, error: Exception) -> CrawlDirError:
    what = f"{directory}: the search index cannot be opened"
    if why := why_no_lock(directory):
        return CrawlDirError(
            f"{what}: {why}. Reading it needs a lock file there: run this as the crawl's user, or"
            " on a copy that can be written"
        )
    return CrawlDirError(f"{what}: {error}; scrapy reindex makes it anew")


def _create(directory: Path) -> None:
    """Pages are compressed before Tantivy has them (packed.py)."""
    tantivy.Index(build_schema(), path=str(directory))
    path = directory / "meta.json"
    meta = json.loads(path.read_bytes())
    meta["index_settings"] |= {
        "docstore_compression": "none",
        "docstore_compress_dedicated_thread": False,
    }
    replace_file(path, json.dumps(meta).encode())


def _prepare(index: tantivy.Index, stemmer: str, version: int) -> tantivy.Index:
    register_analyzers(index, stemmer, version)
    # the other policy watches the files in a thread; Searcher looks at them when it searches
    index.config_reader("manual")
    return index


def _read_meta(path: Path, versions: Container[int] = (SCHEMA_VERSION,)) -> str:
    """The stemmer of the index."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        version, stemmer = meta["schema"], meta["stemmer"]
    except FileNotFoundError:
        raise CrawlDirError(f"{path.parent}: there is no search index of larmspider here") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CrawlDirError(
            f"{path}: cannot be read: {error}; scrapy reindex makes the index anew"
        ) from error
    if version not in versions:
        advice = "use the larmspider that wrote it"
        if isinstance(version, int) and version < SCHEMA_VERSION:
            advice = "scrapy reindex makes it anew, and so does a crawl that goes on"
        raise CrawlDirError(
            f"{path.parent}: the search index has version {version}, this larmspider needs "
            f"{SCHEMA_VERSION}: {advice}"
        )
    if stemmer not in STEMMERS:
        raise CrawlDirError(f"{path}: unknown stemmer {stemmer!r}")
    return str(stemmer)
