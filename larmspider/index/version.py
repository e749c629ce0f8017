"""Records which format an index was written in, so that no program misreads it.

``larmspider-index.json`` is beside the index: ``{"format": 11, "stemmer": "english"}``, and
the hosts that were restricted when its link texts were taken in (link_access.py). An index of
another format is refused; `scrapy reindex` rebuilds it from the stored pages::

    open_index(Path("crawl/index"))
    # OtherFormatError: crawl/index: the search index has format 10, this larmspider reads 11: ...
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tantivy

from larmspider import program
from larmspider.errors import ConfigError, CrawlDirError, OtherFormatError
from larmspider.files import again_with_room, in_words, make_folder, replace_file, why_no_lock
from larmspider.index.schema import INDEX_FORMAT, STEMMERS, build_schema, register_analyzers

META_NAME = "larmspider-index.json"
REBUILDS = f"{program.NAME} verify --repair or {program.NAME} reindex rebuilds it"
"""The advice for an index that is damaged, or gone."""


def has_index(directory: Path) -> bool:
    """Whether ``directory`` has an index that is complete."""
    return (directory / META_NAME).exists() and (directory / "meta.json").exists()


def check_format(directory: Path) -> None:
    """Raise CrawlDirError for no index, OtherFormatError for one of another format."""
    _read_meta(directory / META_NAME)


def is_readable(directory: Path) -> bool:
    """Whether ``directory`` has an index of this format."""
    return has_index(directory) and _meta(directory).get("format") == INDEX_FORMAT


def stemmer_of(directory: Path) -> str | None:
    """The stemmer of an index; None without an index, or if its record cannot be read."""
    stemmer = _meta(directory).get("stemmer")
    return stemmer if stemmer in STEMMERS else None


def restricted_of(directory: Path) -> tuple[str, ...] | None:
    """Patterns of all hosts that were restricted when the link texts of an index were collected
    (link_access.py); None if the index does not list them."""
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
    """Open an existing index. Returns the index and its stemmer. Raises CrawlDirError for a missing
    index, or another format."""
    stemmer = _read_meta(directory / META_NAME)
    try:
        index = tantivy.Index.open(str(directory))
    except (ValueError, OSError) as error:
        raise _unopened(directory, error) from error
    return _prepare(index, stemmer), stemmer


def create_index(directory: Path, stemmer: str) -> tantivy.Index:
    """Create the index, or open an existing one with the same ``stemmer``.

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
        # synced before the index exists, because an index without it is refused
        record = {"format": INDEX_FORMAT, "stemmer": stemmer}
        replace_file(meta, json.dumps(record).encode())
    try:
        if not tantivy.Index.exists(str(directory)):
            _create(directory)
        index = tantivy.Index(build_schema(), path=str(directory))
    except (ValueError, OSError) as error:
        raise _unopened(directory, error) from error
    return _prepare(index, stemmer)


def _unopened(directory: Path, error: Exception) -> CrawlDirError:
    what = f"{directory}: the search index cannot be opened"
    if why := why_no_lock(directory):
        return CrawlDirError(
            f"{what}: {why}. Reading it needs a lock file there: run this as the crawl's user, or"
            " on a copy that can be written"
        )
    if room := again_with_room(why := in_words(error, directory)):
        return CrawlDirError(f"{what}: {why}; {room}")
    why, _, _ = str(error).partition(" Content: ")  # Tantivy's text has all of meta.json there
    return CrawlDirError(f"{what}: {why}; {REBUILDS}")


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


def _prepare(index: tantivy.Index, stemmer: str) -> tantivy.Index:
    register_analyzers(index, stemmer)
    # the other policy watches the files in a thread; Searcher looks at them when it searches
    index.config_reader("manual")
    return index


def _read_meta(path: Path) -> str:
    """The stemmer of the index."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        number, stemmer = meta.get("format", meta.get("schema")), meta["stemmer"]
    except FileNotFoundError:
        raise CrawlDirError(f"{path.parent}: there is no search index of larmspider here") from None
    except (OSError, ValueError, AttributeError, KeyError) as error:
        raise CrawlDirError(f"{path}: cannot be read: {error}; {REBUILDS}") from error
    if number != INDEX_FORMAT:
        mend = f"{program.NAME} reindex rebuilds it from the stored pages"
        what = f"{path.parent}: the search index"
        raise OtherFormatError(what, number, INDEX_FORMAT, mend=mend)
    if stemmer not in STEMMERS:
        raise CrawlDirError(f"{path}: unknown stemmer {stemmer!r}")
    return str(stemmer)
