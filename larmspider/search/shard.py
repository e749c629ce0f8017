"""One index for reading, also while a crawl writes it in another process: the words and counts of
the newest commit, for the pages that a reader may see.

    shard = Shard.open(Path("crawl/index")).seen_by(access)
    with shard.reading() as reader:
        shard.ranking_alone.build(query)
    shard.frequencies(["license", "lisence"])        # {"license": 151}

A Searcher (searcher.py) has one to n shards; reading.py asks them for matches.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

import tantivy
from tantivy import DocAddress, Query

from larmspider.access.table import AccessTable
from larmspider.access.verdicts import Verdicts
from larmspider.errors import is_panic
from larmspider.index.access import EVERYTHING, Access, Limited, slots_in, statistics
from larmspider.index.copies import Likenesses
from larmspider.index.link_access import covered
from larmspider.index.normal import normalized
from larmspider.index.packed import PackedPages
from larmspider.index.schema import (
    MIDDLE,
    shown_label,
    stored_fields,
    title_label,
    without_accents,
)
from larmspider.index.stems import Stems
from larmspider.index.unreached import NAME as UNREACHED_FILE
from larmspider.index.unreached import Unreached
from larmspider.index.version import open_index, restricted_of
from larmspider.search.completions import SMALL, Asked, Labels, LookThrough
from larmspider.search.engine import SearchEngine, as_shown, document_of
from larmspider.search.facets import Dates, count_of, date_span
from larmspider.search.gather import Outage, ShardError
from larmspider.search.ranking import Boosts, GlobalIdf, Ranking, Statistics
from larmspider.search.results import Document

SHORTEST_HEAD = 2
"""Characters from which on the rest of a text is suggested."""
TITLES = 30
"""Pages whose titles are read if labels are not looked through in time: 0.1 ms each."""
_REMEMBERED = 10_000  # words side by side
MAX_READERS = 64
"""Readers with different rights whose view of a commit is remembered, the most recent ones. Each
takes up to 2 MB."""


class Shard(SearchEngine):
    """Reads an index. Holds no lock; sees each commit from the next call on."""

    lists_all_likenesses = True

    def __init__(
        self, index: tantivy.Index, stemmer: str, directory: Path, own_facets: Sequence[str] = ()
    ) -> None:
        """``own_facets``: own fields that are counted."""
        self.directory = directory
        self._meta = directory / "meta.json"
        self._index, self._stems = index, Stems(stemmer)
        self._packed = PackedPages(directory)
        self.own_facets = own_facets
        self.access, self.newest, self.outage = EVERYTHING, Newest(), Outage()
        self.verdicts = Verdicts(AccessTable(directory))
        self._labels, self._crowded = Labels(), dict[tuple[object, ...], int]()
        self.link_texts = True
        self._beside: Sequence[Path] = (directory,)
        self._of_all = self.ranking(Boosts())

    @classmethod
    def open(cls, directory: Path | str, own_facets: Sequence[str] = ()) -> Self:
        """Raises CrawlDirError if there is no index, or one of another schema version."""
        directory = Path(directory)
        return cls(*open_index(directory), directory, own_facets)

    def seen_by(self, access: Access) -> Self:
        """This index without the pages that ``access`` hides. All counts are over the other pages,
        and hits have no score. If hosts have become restricted since the link texts were taken in,
        all link texts are left out."""
        if access.restricted == () and access.reader is None:
            return self
        limited = copy(self)
        limited.access = access
        if not covered(access.restricted, restricted_of(self.directory)):
            limited.link_texts = False
            limited._of_all = limited.ranking(Boosts())
        return limited

    def beside(self, directories: Sequence[Path]) -> Self:
        """This index as one of a crawl's workers. Each worker may know that a page of another
        worker was not reached."""
        other = copy(self)
        other._beside = directories
        return other

    def is_limited(self, reader: tantivy.Searcher) -> bool:
        has_lists = self.access.reader is not None and len(self.verdicts.table.slots) > 1
        return self.access.is_limited or has_lists or isinstance(reader, Limited)

    @property
    def unreached(self) -> Unreached:
        """The pages that were not reached at their last visit, as of the last `reading`."""
        return self.newest.unreached

    def unreached_query(self) -> Query | None:
        """A query for all pages that were not reached; None if there are none."""
        newest = self.newest
        if newest.unreached and newest.unreached_query is None:
            newest.unreached_query = newest.unreached.query(self.schema)
        return newest.unreached_query

    def unreached_places(self, reader: tantivy.Searcher) -> Collection[tuple[int, int]]:
        """Where these pages are in the index; looked up once a commit, 10 us a page."""
        newest, wanted = self.newest, self.unreached_query()
        if wanted is None:
            return ()
        if newest.unreached_places is None:
            every = statistics(reader)
            number = max(1, count_of(every, wanted))
            found = every.search(wanted, number, count=False).hits
            newest.unreached_places = frozenset(
                (address.segment_ord, address.doc) for _, address in found
            )
        return newest.unreached_places

    def stored_of(
        self, reader: tantivy.Searcher, address: DocAddress, *, whole: bool = False
    ) -> dict[str, Any]:
        """The stored fields of a page, with the title that is shown. Unless ``whole``, a very
        long text is cut to the beginning, which hits are made from."""
        stored = stored_fields(reader.doc(address), self._packed, beginning=not whole)
        return as_shown(stored, link_texts=self.link_texts)

    def get(self, key: str) -> Document | None:
        """The page with this canonical URL, or None."""
        key = key.encode("utf-8", "replace").decode()
        query = Query.term_query(self._index.schema, "key", key)
        with self.reading() as reader:
            hits = reader.search(query, 1, count=False).hits
            if not hits:
                return None
            stored = self.stored_of(reader, hits[0][1], whole=True)
        return document_of(stored)

    def completions(self, typed: str, limit: int, until: float) -> list[tuple[str, int]]:
        """Texts of links and titles that begin with the typed text, in lower case, and the number
        of pages with each, most first. If these are few, texts follow in which another word begins
        with the typed text. Text without accents also finds texts with accents; for text with
        accents, texts with the same accents come first. Takes 0.2 ms. If very many texts begin like
        this, the first question gets some of them, ``until`` this time (`time.monotonic`)."""
        found = dict[str, int]()
        with self.reading() as reader:
            for asked in self._beginnings(reader, typed, limit):
                is_late = asked.head.startswith(MIDDLE) and time.monotonic() > until
                if len(found) >= limit or is_late:
                    break
                for term, pages in self._labels.most_frequent(asked, until):
                    found.setdefault(_closed(shown_label(term)), pages)
        return [*found.items()][:limit]

    def look_ahead(self, typed: str, limit: int) -> None:
        """Begin to look for the `completions` of the next question."""
        with self.reading() as reader:
            for asked in self._beginnings(reader, typed, limit)[:1]:
                self._labels.look_ahead(asked)

    def _beginnings(self, reader: tantivy.Searcher, typed: str, limit: int) -> list[Asked]:
        head = typed_head(typed)
        if len(head) < SHORTEST_HEAD or not self.link_texts:
            return []
        plain = without_accents(head)

        def pages(label: str) -> int:
            if isinstance(reader, Limited):
                return reader.doc_freq("labels", label)
            # the text of a deleted page may still be there
            return count_of(reader, Query.term_query(self.schema, "labels", label))

        return [
            Asked(
                beginning,
                limit,
                self.newest.seen,
                self.access if isinstance(reader, Limited) else None,
                _looks_through(reader, self._pages_of_all()),
                pages,
                partial(self._titles, reader, beginning),
                at_once=self._pages_of_all() <= SMALL,
            )
            for beginning in dict.fromkeys((head, plain, f"{MIDDLE}{plain}"))
        ]

    def _titles(self, reader: tantivy.Searcher, head: str) -> tuple[Iterator[str], bool]:
        """Labels that begin with ``head``, of pages with the first of these in the alphabet, 50 of
        each segment of the index; and whether there are other pages."""
        first = Query.phrase_prefix_query(self.schema, "labels", [head])
        hits = reader.search(first, TITLES, count=False, weight_by_field="prior").hits
        labels = (title_label(self.stored_of(reader, address)["title"]) for _, address in hits)
        if head.startswith(MIDDLE):
            inside = head.replace(MIDDLE, " ")
            return (one for one in labels if inside in without_accents(one)), len(hits) == TITLES
        of_head = (
            one for one in labels if one.startswith(head) or without_accents(one).startswith(head)
        )
        return of_head, len(hits) == TITLES

    def words(self, text: str) -> list[str]:
        """The words of ``text`` as the index writes them."""
        return self._of_all.words(text)

    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        """The words that begin with ``head``, None if they are more than ``most``. Unless
        ``exactly``, a few may belong to hidden pages, so look up shown words in `frequencies`.
        Tantivy looks through all words (80 ms for 200,000). Heads with too many words are therefore
        remembered until the index has fewer pages."""
        with self.reading() as reader:
            crowded = self.access, self.verdicts.table.version, head, most
            pages = self._crowded.get(crowded)
            if pages is not None and pages <= self.documents():
                return None
            words = statistics(reader).terms_with_prefix("exact", head, limit=most + 1)
            if isinstance(reader, Limited) and (exactly or len(words) > most):
                words = reader.terms_with_prefix("exact", head, limit=most + 1)
            if len(words) > most:
                if len(self._crowded) >= _REMEMBERED:
                    self._crowded.clear()
                self._crowded[crowded] = self.documents()
                return None
            return [word for word, _ in words]

    def field_names(self) -> Sequence[str]:
        """The fields of the index, by their numbers in Tantivy's explanations."""
        return [each["name"] for each in json.loads(self._meta.read_bytes())["schema"]]

    def documents(self) -> int:
        """The number of pages, with the deleted ones that Tantivy has not merged away yet, because
        BM25 counts them; for a reader who does not see all pages, the visible ones."""
        with self.reading() as reader:
            return reader.num_docs if isinstance(reader, Limited) else self._pages_of_all()

    def _pages_of_all(self) -> int:
        """Pages with the deleted ones, seen or not."""
        if self.newest.documents is None:
            meta = json.loads(self._meta.read_bytes())
            self.newest.documents = sum(segment["max_doc"] for segment in meta["segments"])
        return self.newest.documents

    def dates(self) -> Dates:
        """The dates of the oldest and the newest page; 6 ms for a million pages, once a commit."""
        with self.reading() as reader:
            known = self.known
            if known.dates is None:
                known.dates = date_span(reader)
            return known.dates

    @property
    def schema(self) -> tantivy.Schema:
        return self._index.schema

    @property
    def ranking_alone(self) -> Ranking:
        """The ranking by the pages that the reader sees."""
        if self.access is EVERYTHING:
            return self._of_all
        with self.reading() as reader:
            if not isinstance(reader, Limited):
                return self._of_all
            known, key = self.known.rankings, self.link_texts
            if key not in known:
                known[key] = self.ranking(GlobalIdf([Statistics.of(reader, 0)]).boosts(0))
            return known[key]

    def ranking(self, boosts: Boosts) -> Ranking:
        """The ranking for this index as one of several."""
        return Ranking(
            self._index.schema,
            self.seen_stems,
            boosts,
            link_texts=self.link_texts,
            unreached=self.unreached_query,
        )

    @property
    def seen_stems(self) -> Stems:
        """Stems that know only the words of pages that the reader sees."""
        if self.access is EVERYTHING:
            return self._stems
        with self.reading() as reader:
            if not isinstance(reader, Limited):
                return self._stems
            known = self.known
            if known.stems is None:
                known.stems = self._stems.looking_in(reader)
            return known.stems

    @contextmanager
    def reading(self) -> Iterator[tantivy.Searcher]:
        """The newest commit; Tantivy's errors become ours."""
        with self.naming_errors():
            if (held := self.newest.held) is not None:
                yield self._limited(held)
                return
            meta = self._meta.stat()
            # each commit renames a new file into place
            seen = (meta.st_mtime_ns, meta.st_ino, *self.verdicts.table.refresh())
            if seen != self.newest.seen:
                self._index.reload()
                self._stems.look_in(self._index.searcher())
                self.newest.renew(seen)
            marks = [_stamp(path / UNREACHED_FILE) for path in self._beside]
            if marks != self.newest.marks:
                self.newest.mark(marks, map(Unreached.read, self._beside))
            yield self._limited(self._index.searcher())

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Errors of Tantivy name this shard (`ShardError`)."""
        try:
            yield
        except (ValueError, OSError) as error:
            text = f"{self.directory}: cannot read the index: {error}"
            raise ShardError(self.directory, text) from error
        except BaseException as error:
            if not is_panic(error):
                raise
            text = f"{self.directory}: the index cannot answer this"
            raise ShardError(self.directory, text) from error

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """Many questions to the commit that is the newest one now: to look for a newer one takes
        longer than most answers."""
        newest = self.newest
        with self.reading():
            held = None if newest.held is not None else self._index.searcher()
            newest.held = newest.held or held
            try:
                yield
            finally:
                if held is not None:
                    newest.held = None

    def _limited(self, reader: tantivy.Searcher) -> tantivy.Searcher:
        """The commit as the reader may see it: all questions to the index pass here."""
        if self.access is EVERYTHING:
            return reader
        known = self.known
        if known.limited is None:
            if self.newest.slots is None:
                self.newest.slots = slots_in(reader)
            hidden = self.access.hidden(reader, self.schema, self.verdicts, self.newest.slots)
            known.limited = (
                reader
                if hidden is None
                else Limited(reader, self.schema, hidden, self._pages_of_all())
            )
        return cast("tantivy.Searcher", known.limited)

    @property
    def known(self) -> KnownOfReader:
        """Facts about the newest commit as this reader sees it."""
        return self.newest.known(self.access)


Stamp: TypeAlias = tuple[int, ...] | None
"""Identifies a version of a file."""


def _stamp(path: Path) -> Stamp:
    """The stamp of a file; None if the file is absent."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


class KnownOfReader:
    """Facts about a commit as readers with one `Access` see it."""

    def __init__(self) -> None:
        self.limited: tantivy.Searcher | Limited | None = None
        self.stems: Stems | None = None
        self.rankings: dict[bool, Ranking] = {}
        self.side_by_side: dict[tuple[str, ...], bool] = {}
        self.dates: Dates | None = None
        self.copies: dict[int, int] = {}
        self.likenesses: Likenesses | None = None


class Newest:
    """Facts about the commit that was read last, for all readers."""

    def __init__(self) -> None:
        self.held: tantivy.Searcher | None = None
        self._lock = threading.Lock()
        self.renew(None)
        self.mark([], ())

    def renew(self, seen: Stamp) -> None:
        """Reset for a commit with the stamp ``seen``."""
        self.seen = seen
        self._readers: dict[Access, KnownOfReader] = {}  # the most recent one is the last
        self.slots: list[int] | None = None
        self.documents: int | None = None
        self.unreached_places: Collection[tuple[int, int]] | None = None

    def known(self, access: Access) -> KnownOfReader:
        with self._lock:
            found = self._readers.pop(access, None) or KnownOfReader()
            self._readers[access] = found
            if len(self._readers) > MAX_READERS:
                del self._readers[next(iter(self._readers))]
            return found

    def mark(self, seen: Sequence[Stamp], unreached: Iterable[Unreached]) -> None:
        """Reset for files of marks with the stamps ``seen``."""
        self.marks = list(seen)
        self.unreached = reduce(or_, unreached, Unreached())
        self.unreached_query: Query | None = None
        self.unreached_places = None


def _looks_through(reader: tantivy.Searcher | Limited, pages: int) -> LookThrough:
    """Looks through labels. ``pages`` includes deleted pages, which Tantivy counts without a
    filter."""
    look = partial(reader.terms_with_prefix, "labels")
    if not isinstance(reader, Limited) and reader.num_docs < pages:
        look = partial(look, filter_query=Query.all_query())
    return lambda head, most: look(head, limit=most)


def typed_head(typed: str) -> str:
    """The typed text in the form of labels."""
    return " ".join(normalized(typed).lower().split())


def _closed(text: str) -> str:
    """A label with the bracket that it lost at its end."""
    return text + ")" * (text.count("(") - text.count(")"))
