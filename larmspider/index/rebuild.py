"""Builds a new index beside the old one, and swaps it in by rename.

    rebuild(Path("crawl/index"), reextracted(...))     # from the stored pages (reextract.py)
    rebuild(Path("crawl/index"))                       # from the stored fields of the old index

Link texts are taken over if the old index has this format. A killed rebuild starts again; `finish`
repairs a crash between the renames.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha1
from pathlib import Path
from typing import TypeAlias

import tantivy

from larmspider.access.sources import Sources
from larmspider.access.table import NAME as ACCESS
from larmspider.errors import CrawlDirError, is_panic
from larmspider.files import replace_file, sync_file, sync_folder
from larmspider.index.likeness import Simhashes
from larmspider.index.link_access import LinkAccess
from larmspider.index.packed import PackedPages
from larmspider.index.page import IndexedPage
from larmspider.index.schema import stored_fields
from larmspider.index.unreached import carry_over
from larmspider.index.version import (
    META_NAME,
    check_format,
    is_readable,
    note_restricted_of,
    restricted_of,
    stemmer_of,
)
from larmspider.index.waiting import waiting_in
from larmspider.index.writer import IndexWriter

Documents: TypeAlias = Iterator[tuple[str, IndexedPage | None]]
"""Canonical URL and page; None: not in the index."""
LinkTexts: TypeAlias = Iterator[tuple[str, Collection[tuple[str, str]]]]
"""Exact URL of each page, exact targets and texts of its links."""
Progress: TypeAlias = Callable[[int, int], object]
"""Called with pages done and in all."""

_COMPLETE = "complete"
_CHUNK = 10_000


def files_of(directory: Path) -> tuple[Path, Path]:
    """The new index while it is made, and the old one until it is deleted."""
    return directory.with_name(f"{directory.name}.new"), directory.with_name(
        f"{directory.name}.old"
    )


def rebuild(
    directory: Path,
    documents: tuple[int, Documents] | None = None,
    links: Callable[[LinkAccess], LinkTexts] = lambda _access: iter(()),
    *,
    stemmer: str = "",
    heap_bytes: int = 64_000_000,
    simhashes: Simhashes | None = None,
    progress: Progress = lambda _done, _total: None,
    restricted: Collection[str] = (),
    pages: Callable[[], Iterable[tuple[str, str]]] = tuple,
    sources: Sources | None = None,
) -> int:
    """Replace the index in ``directory``, and return the number of pages of the new one.

    ``documents``: the number of pages and the pages; None: the pages of the old index. ``links``
    gives the link texts if the old index has none, or has another format. ``stemmer``: by default
    the old index's. ``simhashes`` as in IndexWriter. Link texts of pages on ``restricted`` hosts,
    or on hosts that the old index lists as restricted, are for their own host alone; ``pages``
    gives URL and exact form of all pages with links. ``sources`` know who may read a page. Raises
    CrawlDirError; the old index then stays unchanged.
    """
    finish(directory)
    draft, _ = files_of(directory)
    stemmer = stemmer or stemmer_of(directory) or "english"
    total, found = stored_documents(directory) if documents is None else documents
    anchors = directory / "anchors" / "data.mdb"
    has_anchors = anchors.exists() and is_readable(directory)
    if has_anchors:
        (draft / "anchors").mkdir(parents=True)
        shutil.copyfile(anchors, draft / "anchors" / anchors.name)
        sync_file(draft / "anchors" / anchors.name)
        sync_folder(draft / "anchors")
    if (directory / ACCESS).exists():
        draft.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory / ACCESS, draft / ACCESS)
    try:
        with IndexWriter(
            draft, heap_bytes=heap_bytes, stemmer=stemmer, simhashes=simhashes
        ) as writer:
            hosts = (*restricted, *(restricted_of(directory) or ()))
            access = LinkAccess(hosts, writer.access)
            if sources:  # rules also say which link texts are taken
                writer.renew_access(sources)
            if has_anchors:
                if (noted := restricted_of(directory)) is not None:
                    note_restricted_of(draft, noted)
                writer.withdraw_link_texts(access, pages)
            else:
                note_restricted_of(draft, access.restricted)
                for number, (page, texts) in enumerate(links(access), 1):
                    writer.add_anchors(page, texts)
                    if number % _CHUNK == 0:
                        writer.commit()
                writer.commit()
            for done, (key, indexed) in enumerate(found, 1):
                if indexed is None:
                    writer.remove(key)
                else:
                    writer.add_indexed(indexed)
                if done % _CHUNK == 0:
                    writer.commit()
                progress(done, total)
            writer.commit()
            if sources:
                writer.renew_access(sources)
            count = writer.count()
            carry_over([directory], draft)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    replace_file(draft / _COMPLETE, _state_of(directory).encode())
    try:
        _swap(directory)
    except OSError as error:
        raise CrawlDirError(f"{directory}: cannot be replaced: {error}") from error
    finish(directory)
    return count


def finish(directory: Path) -> None:
    """Swap in a complete new index, and delete an incomplete one. Raises CrawlDirError."""
    draft, old = files_of(directory)
    try:
        if (draft / _COMPLETE).exists() and _is_newer(draft, directory):
            _swap(directory)
        elif not directory.exists() and old.exists():
            old.rename(directory)
            sync_folder(directory.parent)
        (directory / _COMPLETE).unlink(missing_ok=True)
        for left in (draft, old):
            if left.exists():
                shutil.rmtree(left)
    except OSError as error:
        raise CrawlDirError(f"{directory}: cannot be replaced: {error}") from error


def _swap(directory: Path) -> None:
    draft, old = files_of(directory)
    if directory.exists():
        directory.rename(old)
    draft.rename(directory)
    sync_folder(directory.parent)


def _is_newer(draft: Path, directory: Path) -> bool:
    """Whether ``draft`` was made from the present index in ``directory``, to which nothing was
    committed since."""
    if not (directory / META_NAME).exists():
        return True
    return (draft / _COMPLETE).read_text() == _state_of(directory)


def _state_of(directory: Path) -> str:
    """A value that differs after each commit; "" if there is no index."""
    try:
        return sha1((directory / "meta.json").read_bytes(), usedforsecurity=False).hexdigest()
    except FileNotFoundError:
        return ""


def stored_documents(directory: Path) -> tuple[int, Documents]:
    """The approximate number of an index's stored pages, and these pages, including waiting pages.
    Raises CrawlDirError if the index cannot be read, or has another format."""
    check_format(directory)
    try:
        searcher = tantivy.Index.open(str(directory)).searcher()
        packed = PackedPages(directory)
        waiting = waiting_in(directory, packed)
        every, total = tantivy.Query.all_query(), searcher.num_docs
    except CrawlDirError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise CrawlDirError(f"{directory}: the old index cannot be read: {error}") from error

    def documents() -> Documents:
        for start in range(0, total, _CHUNK):
            for _, address in searcher.search(every, _CHUNK, count=False, offset=start).hits:
                page = IndexedPage.of(stored_fields(searcher.doc(address), packed))
                if page.key not in waiting and page.container not in waiting:
                    yield page.key, page
        yield from waiting.items()  # None: a removal

    return total + len(waiting), documents()
