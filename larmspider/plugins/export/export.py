"""Writes a crawl into one file: JSON lines, CSV, Parquet, WARC or GraphML (docs/export.md).

    export(crawl, "links", Path("links.csv"), host="wiki.example")

The file is written beside its name and gets it when it is whole. A crawl may be running meanwhile.
"""

from __future__ import annotations

import csv
import io
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.sax.saxutils import quoteattr

from larmspider.crawl.api import Crawl, CrawledPage
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError
from larmspider.fetch.blobs import digest_of
from larmspider.files import sync_file, sync_folder
from larmspider.formatting import defused, escaped, utc
from larmspider.frontier.storage.records import host_of
from larmspider.items import Page, part_url
from larmspider.pipelines.deleted_log import DELETED_LOG_COLUMNS
from larmspider.pipelines.records import read_records
from larmspider.plugins.export import passages
from larmspider.plugins.warc.pipeline import FOLDER, cdxj_of, cdxj_records, warc_files
from larmspider.plugins.warc.records import info_record, page_records

PAGES, TEXT, LINKS, HOSTS, REMOVED = "pages", "text", "links", "hosts", "removed"
PASSAGES = "passages"
COLUMNS: Mapping[str, Mapping[str, type]] = {
    PAGES: {
        "url": str, "status": int, "mime": str, "size": int, "title": str, "fetched": datetime,
        "depth": int, "from_page": str,
    },
    TEXT: {"url": str, "title": str, "language": str, "text": str},
    PASSAGES: passages.COLUMNS,
    LINKS: {
        "from_page": str, "to_page": str, "to_page_normalized": str, "type": int, "anchor": str,
    },
    HOSTS: {"from_host": str, "to_host": str, "links": int},
    REMOVED: {
        "url": str, "captured": str, "removed": str, "reason": str, "file": str, "offset": int,
        "length": int,
    },
}  # fmt: skip
"""The exports and their columns."""
TABLES = ("jsonl", "csv", "parquet")
ALONE = {"warc.gz": PAGES, "graphml": HOSTS}
"""Formats that have one export only."""
_BATCH = 1_000
_SUFFIX = ".part"

Row = tuple[Any, ...]
Progress = Callable[[int, int], None]


class Exported(NamedTuple):
    rows: int
    bytes: int


def format_of(what: str, name: str) -> str:
    """The format that the end of a file's name stands for. Raises ConfigError."""
    if what not in COLUMNS:
        raise ConfigError(f"{what}: expected one of {', '.join(COLUMNS)}")
    own = [kind for kind, only in ALONE.items() if only == what]
    kinds = TABLES[:1] if what == PASSAGES else (*TABLES, *own)
    found = next((kind for kind in kinds if name.endswith(f".{kind}")), "")
    if not found:
        ends = ", ".join(f".{kind}" for kind in kinds)
        raise ConfigError(f"{name}: expected a name that ends in one of {ends}, for {what}")
    return found


def export(
    crawl: Crawl,
    what: str,
    path: Path,
    *,
    host: str = "",
    since: str | None = None,
    bodies: bool = False,
    force: bool = False,
    progress: Progress = lambda _done, _whole: None,
) -> Exported:
    """Write ``what`` into ``path``. ``bodies``: with the bodies of pages, in base64 or, in Parquet,
    as bytes. Raises ConfigError for impossible requests, before anything is written. Raises
    LarmspiderError or OSError later, and then leaves no file."""
    kind = format_of(what, path.name)
    if bodies and (what != PAGES or kind in ALONE):
        raise ConfigError(f"--bodies: expected pages as one of {', '.join(TABLES)}")
    if since is not None and what not in (PAGES, TEXT, PASSAGES):
        raise ConfigError(f"--since: expected pages, text or passages, not {what}")
    if host and what == REMOVED:
        raise ConfigError(f"--host: expected pages, text, passages, links or hosts, not {what}")
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"{path}: expected the name of a file in a folder that exists")
    if path.exists() and not force:
        raise ConfigError(f"{path} exists; --force replaces it")
    if what in (LINKS, HOSTS) and not crawl.directory.logs.size("links.log"):
        raise CrawlDirError(
            f"the crawl in {crawl.directory.path} has no links.log, or an empty one"
        )
    write = _parquet_writer() if kind == "parquet" else _WRITERS[kind]
    draft = path.with_name(path.name + _SUFFIX)
    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for item in items:
            yield item
            rows += 1

    columns = dict(COLUMNS[what]) | ({"body": bytes} if bodies else {})
    if kind == "warc.gz":
        items: Iterator[Any] = _watched_pages(crawl, host, since, progress)
    else:
        items = _rows(crawl, what, host, since, progress, bodies=bodies)
    try:
        out = draft.open("wb")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with out:
            write(out, columns, counted())
        size = draft.stat().st_size
        sync_file(draft)
        draft.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # an error of write()
            why = error.strerror or error
            raise LarmspiderError(f"{path} cannot be written: {why}") from None
        raise
    return Exported(rows, size)


def _watched_pages(
    crawl: Crawl, host: str, since: str | None, progress: Progress
) -> Iterator[CrawledPage]:
    pages = crawl.pages(host, since)
    with crawl.directory.frontier() as frontier:
        whole = 0 if frontier is None else frontier.counts().stored
    for number, page in enumerate(pages, 1):
        yield page
        if number % _BATCH == 0:
            progress(min(number, whole), whole)


def _rows(
    crawl: Crawl, what: str, host: str, since: str | None, progress: Progress, *, bodies: bool
) -> Iterator[Row]:
    if what == PAGES:
        for page in _watched_pages(crawl, host, since, progress):
            yield (*page.record().values(), page.body) if bodies else (*page.record().values(),)
    elif what == TEXT:
        for page in _watched_pages(crawl, host, since, progress):
            if page.status == 200:
                yield from _texts(page)
    elif what == PASSAGES:
        of = passages.Passages(crawl)
        for page in _watched_pages(crawl, host, since, progress):
            if page.status == 200:
                yield from of.rows(page)
    elif what == LINKS:
        yield from _links(crawl, host, progress)
    elif what == REMOVED:
        yield from _removed(crawl)
    else:
        pairs = Counter((host_of(row[0]), host_of(row[1])) for row in _links(crawl, host, progress))
        yield from ((*pair, number) for pair, number in pairs.items() if pair[1])


def _texts(page: CrawledPage) -> Iterator[Row]:
    """A row for the text of a page, and one for each part of a document."""
    read = page.read()
    if read.text:
        yield page.url, read.title or page.title, read.language or "", read.text
    for part in read.parts:
        if part.text:
            url = part_url(page.url, part.name)
            yield url, part.title or part.name, part.language or "", part.text


def _links(crawl: Crawl, host: str, progress: Progress) -> Iterator[Row]:
    whole, done = crawl.directory.logs.size("links.log"), 0
    for number, link in enumerate(crawl.links(host)):
        row = astuple(link)
        yield row
        done += sum(map(len, (row[0], row[1], row[2], row[4]))) + 6
        if number % _BATCH == 0:
            progress(min(done, whole), whole)


def _removed(crawl: Crawl) -> Iterator[Row]:
    """The records of WARC files, which forget nothing, of pages that were removed later."""
    for part in crawl.directory.parts:
        log, removed = part.path / "deleted.log", dict[str, tuple[str, str]]()
        for when, _, exact, reason in (
            read_records(log, len(DELETED_LOG_COLUMNS)) if log.exists() else ()
        ):
            removed[exact] = when, reason
        for path in warc_files(part.path / FOLDER).values():
            for captured, fields in cdxj_records(cdxj_of(path)):
                when, reason = removed.get(part.forms(fields["url"]).exact, ("", ""))
                if captured[:19] <= when[:19]:
                    place = int(fields["offset"]), int(fields["length"])
                    yield fields["url"], captured, when, reason, str(path), *place


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return utc(value.timestamp()) if isinstance(value, datetime) else value


def _write_jsonl(out: IO[bytes], columns: Mapping[str, type], rows: Iterable[Row]) -> None:
    names = _names(columns)
    for row in rows:
        record = dict(zip(names, map(_plain, row), strict=True))
        out.write(json.dumps(record).encode() + b"\n")


def _names(columns: Mapping[str, type]) -> list[str]:
    return [f"{name}_base64" if kind is bytes else name for name, kind in columns.items()]


def _write_csv(out: IO[bytes], columns: Mapping[str, type], rows: Iterable[Row]) -> None:
    """RFC 4180; formulas and invisible characters as everywhere (formatting.py)."""
    text = io.TextIOWrapper(out, "utf-8", "replace", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(_names(columns))
    for row in rows:
        cells = (value if isinstance(value, bytes) else defused(value) for value in row)
        writer.writerow([_cell(cell) for cell in cells])
    text.detach()


def _cell(value: object) -> object:
    return escaped(value) if isinstance(value, str) else _plain(value)


def _write_graphml(out: IO[bytes], _: Mapping[str, type], rows: Iterable[Row]) -> None:
    """Nodes are hosts, edges have the number of links (http://graphml.graphdrawing.org/)."""
    found = list(rows)
    hosts = sorted({host for row in found for host in row[:2]})
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        '<key id="links" for="edge" attr.name="links" attr.type="long"/>',
        '<graph id="hosts" edgedefault="directed">',
        *(f"<node id={_id(host)}/>" for host in hosts),
        *(
            f'<edge source={_id(one)} target={_id(other)}><data key="links">{links}</data></edge>'
            for one, other, links in sorted(found)
        ),
        "</graph>",
        "</graphml>\n",
    ]
    out.write("\n".join(lines).encode())


def _id(host: str) -> str:
    return quoteattr("".join(char for char in host if char.isprintable()))


def _write_warc(out: IO[bytes], _: Mapping[str, type], pages: Iterable[CrawledPage]) -> None:
    """Heads are made from the logs: status and media type."""
    about = "from the page files of larmspider: heads have status and media type alone"
    out.write(info_record(Path(out.name).name.removesuffix(_SUFFIX), description=about).member)
    for page in pages:
        made = Page(page.url, status=page.status, mime=page.mime, body=page.body)
        if (file := page.body_file) is not None:
            made.body_file, made.file_bytes, made.digest = file, page.size, digest_of(file)
        made.from_page, made.fetched = page.from_page, 0.0
        if page.fetched is not None:
            made.fetched = page.fetched.timestamp()
        for record in page_records(made, None):
            out.writelines(record.pieces())


_Writer = Callable[[IO[bytes], Mapping[str, type], Iterable[Any]], None]
_WRITERS: Mapping[str, _Writer] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "graphml": _write_graphml,
    "warc.gz": _write_warc,
}


def _parquet_writer() -> _Writer:
    """Raises ConfigError if pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError(
            "Parquet needs pyarrow: pip install 'larmspider[parquet]', or export .jsonl or .csv"
        ) from None
    types = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        bytes: pyarrow.large_binary(),
        datetime: pyarrow.timestamp("ms", tz="UTC"),
    }

    def write(out: IO[bytes], columns: Mapping[str, type], rows: Iterable[Row]) -> None:
        schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
        with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
            rows = iter(rows)
            while batch := list(islice(rows, _BATCH)):
                arrays = [
                    pyarrow.array(column, field.type)
                    for column, field in zip(zip(*batch, strict=True), schema, strict=True)
                ]
                writer.write_batch(pyarrow.record_batch(arrays, schema=schema))

    return write
