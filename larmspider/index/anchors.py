"""Anchor texts: the names that other pages give a page, often in better words than its own.

They come before and after the page itself is indexed. An LMDB table beside the index keeps them by
target::

    anchors.add("http://wiki.example/", {("http://wiki.example/vpn", "remote access"), ...})
    anchors.flush()
    anchors.texts("http://wiki.example/vpn")     # ["remote access", "remote access", "VPN how-to"]

A text counts once for each page with such a link, as long as the page has it. The table keeps the
texts that each page gave; a page that is added again replaces them. Texts, their indexed copies and
due pages change in one transaction.

    pairs    8 bytes of the target, 4 of the text     number of pages, text
    pages    8 bytes of a page                        its pairs: each target, and 4 bytes a text
    heads    8 bytes of the target                    its indexed state (`_Head`), its URL
    moved    8 bytes of a URL that has moved          8 bytes of its new URL

Rows come in no order, so LMDB's pages are half empty, and it keeps freed ones: a table of 11 MB
takes 43 MB. At its end a crawl rewrites a table that it has filled, in order and without gaps.
"""

from __future__ import annotations

import shutil
import struct
import threading
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import lmdb

from larmspider.errors import MEND, CrawlDirError
from larmspider.files import again_with_room, in_words, make_folder, sync_folder
from larmspider.index.link_access import LinkAccess

MAX_TEXTS = 1_000
"""Distinct texts of a target that are indexed: the texts with the most pages."""
MAX_TEXTS_BYTES = 16_384
"""All texts of a target together, in UTF-8."""
MAX_TEXT = 128
"""Characters; a longer text, a paragraph made a link, is dropped."""
MAX_COPIES = 4
"""Copies of one text in the index, reached at 8 pages."""

CLEAN, DIRTY, DUE = 0, 1, 2

ALWAYS_COPIED, ADDED_SHARE = 1 << 26, 4
"""Used bytes up to which a table is rewritten if more than a quarter of its pages were written
since it was opened: they left LMDB's pages half empty. Takes 0.5 s."""
LEAST_WASTE = 1 << 20
"""Unused bytes from which on a larger table is rewritten, if they are also a third of it."""
MOST_COPIED = 1 << 30
"""Used bytes up to which a table is rewritten: more would delay the end of a crawl by 10 s."""
ROOM_TO_COPY = 1 << 22
"""Bytes that stay free on the disk beside a rewritten table: LMDB maps its lock file, and a full
file system ends the process with SIGBUS."""
_ANEW = "anew"
_PAGES_AT_ONCE = 1_000  # pages whose texts are removed in one transaction

_COUNT = struct.Struct("<I")
_ID, _TARGET = 12, 8
_TEXT = _ID - _TARGET
_MOST_TEXTS = 255  # texts of one target, as their number is a byte


class LinkTexts(NamedTuple):
    """The indexed texts of links to a page, repeated by weight, and the sum over all texts of the
    pages with such a link."""

    texts: list[str]
    number: int


NO_LINKS = LinkTexts([], 0)

Standing: TypeAlias = tuple[int, int]
"""Copies of all texts of a target, and their checksum."""


class AnchorTable:
    """The table in ``directory``. `add` may run in one thread while another runs the rest."""

    def __init__(self, directory: Path, map_bytes: int = 1 << 26) -> None:
        """Open or create the table; its limit ``map_bytes`` doubles as needed. Raises
        CrawlDirError."""
        make_folder(directory)
        shutil.rmtree(directory / _ANEW, ignore_errors=True)  # left by a killed process
        try:
            # metasync stays on: the frontier counts as stored what the last commit has
            self._env = lmdb.open(str(directory), map_size=map_bytes, max_dbs=6)
            sync_folder(directory)  # LMDB syncs the file, and not its name
            self._env.reader_check()  # forget readers that were killed
            self._pairs = self._env.open_db(b"pairs")
            self._pages = self._env.open_db(b"pages")
            self._heads = self._env.open_db(b"heads")
            self._moves = self._env.open_db(b"moved")
            self._moved = _moved_in(self._env, self._moves)
            self._states = {
                DIRTY: self._env.open_db(b"dirty"),
                DUE: self._env.open_db(b"due"),
            }
        except lmdb.Error as error:
            why = in_words(error, directory)
            mend = again_with_room(why) or MEND
            raise CrawlDirError(
                f"{directory}: the anchor table cannot be opened: {why}; {mend}"
            ) from error
        self._directory, self._added = directory, 0  # pages
        self._waiting: dict[str, str] = {}  # links of a page, each on a line
        self._moving: list[tuple[str, str]] = []  # old and new URL
        self._lock = threading.Lock()
        self._growing = threading.Lock()  # LMDB's map grows only while no thread reads
        self.unlinked: list[str] = []
        """Indexed pages that have lost their last link text. The reader of this list empties it."""

    def add(self, page: str, links: Collection[tuple[str, str]]) -> None:
        """Take in (canonical target, anchor text) of a page's links to other pages. They replace
        its earlier links; `flush` writes them, each once."""
        written = _written(links)
        with self._lock:
            self._waiting[page] = written

    def __len__(self) -> int:
        """Pages since the last `flush`."""
        return len(self._waiting)

    def flush(
        self,
        indexed: Mapping[str, int | None] | None = None,
        stood: Mapping[str, Standing] = MappingProxyType({}),
    ) -> None:
        """Write what waits in one transaction, keys in order.

        ``indexed``: the documents that were indexed since the last flush (canonical URL -> copies
        of anchor texts) or removed (None). Their texts are the texts of the flush before, or the
        texts in ``stood``. Raises CrawlDirError if the disk refuses; the texts wait for the next
        flush.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            moving, self._moving = self._moving, []
        moved = self._moved

        def write(txn: Any) -> None:
            for old, new in moving:
                self._move(txn, old, new)
            if moving:
                self._moved = dict(txn.cursor(self._moves))
            self._write(txn, waiting, indexed or {}, stood)

        try:
            self._in_transaction(write)
        except BaseException as error:
            with self._lock:
                self._waiting = waiting | self._waiting
                self._moving = moving + self._moving
            self._moved = moved
            if isinstance(error, lmdb.Error):  # the disk is full, for one
                path = self._env.path()
                raise CrawlDirError(
                    f"{path}: cannot write anchors: {in_words(error, Path(path))}"
                ) from error
            raise

    def _in_transaction(self, write: Callable[[Any], object]) -> None:
        while True:
            try:
                with self._env.begin(write=True, db=self._pairs) as txn:
                    write(txn)
            except lmdb.MapFullError:
                with self._growing:
                    self._env.set_mapsize(2 * self._env.info()["map_size"])
            else:
                return

    def _write(
        self,
        txn: Any,
        waiting: Mapping[str, str],
        indexed: Mapping[str, int | None],
        stood: Mapping[str, Standing],
    ) -> None:
        ids = _Ids()
        counts: Counter[bytes] = Counter()
        for page, links in waiting.items():
            key = page_key(page)
            new = set(map(ids.__getitem__, links.split("\n")))
            new.discard(b"")
            if self._moved:
                new = {*map(self._now, new)}
            counts.update(new)
            if (before := txn.get(key, db=self._pages)) is not None:
                counts.subtract(map(self._now, _split(before)))
            if new:
                txn.put(key, _joined(new), db=self._pages)
                self._added += 1
            elif before is not None:
                txn.delete(key, db=self._pages)
        texts, urls = ids.texts, ids.urls
        if self._moved:  # the new URL has the texts of the old one
            texts = {self._now(one): text for one, text in texts.items()}
        self._add(txn, counts, texts, urls, indexed, stood)

    def _now(self, one: bytes) -> bytes:
        """A pair, of the URL to which its target has moved."""
        to = self._moved.get(one[:_TARGET]) if self._moved else None
        return one if to is None else to + one[_TARGET:]

    def move(self, old: str, new: str) -> None:
        """Give the texts of links to a URL to its new URL, at the next `flush`. Later texts go
        there, too."""
        with self._lock:
            self._moving.append((old, new))

    def _move(self, txn: Any, old: str, new: str) -> None:
        was, to = page_key(old), page_key(new)
        counts, texts = Counter[bytes](), dict[bytes, bytes]()
        with txn.cursor(self._pairs) as cursor:
            found = cursor.set_range(was)
            for one, row in cursor if found else ():
                if not one.startswith(was):
                    break
                number, there = _COUNT.unpack_from(row)[0], to + one[_TARGET:]
                counts[one] -= number
                counts[there] += number
                texts[there] = row[_COUNT.size :]
        unlinked = [*self.unlinked]
        self._add(txn, counts, texts, {was: old, to: new}, {})
        self.unlinked = unlinked  # the old URL leaves
        txn.delete(to, db=self._moves)  # it may have moved back
        for key, target in [*txn.cursor(self._moves)] if was in self._moved.values() else ():
            if target == was and key != to:
                txn.put(key, to, db=self._moves)
        txn.put(was, to, db=self._moves)

    def _add(
        self,
        txn: Any,
        counts: Counter[bytes],
        texts: Mapping[bytes, bytes],
        urls: Mapping[bytes, str],
        indexed: Mapping[str, int | None],
        stood: Mapping[str, Standing] = MappingProxyType({}),
    ) -> None:
        """Add to the numbers of pages, or take from them."""
        changes: dict[bytes, list[int]] = defaultdict(lambda: [0, 0])
        for one in sorted(counts):
            if not (added := counts[one]):
                continue
            row = txn.get(one)
            was = _COUNT.unpack_from(row)[0] if row else 0
            now = was + added
            if now > 0:
                txn.put(one, _COUNT.pack(now) + (row[_COUNT.size :] if row else texts[one]))
            elif row:
                txn.delete(one)
            if copies := _copies(now) - _copies(was):
                change = changes[one[:_TARGET]]
                change[0] += copies
                change[1] += copies * int.from_bytes(one[_TARGET:], "big")
        marks = {page_key(url): (url, copies is not None) for url, copies in indexed.items()}
        for key in sorted(changes.keys() | marks.keys()):
            record = txn.get(key, db=self._heads)
            url = urls.get(key) or marks.get(key, ("", False))[0]
            head = _Head.decode(record) if record else _Head(url)
            was = head.state
            if key in marks:  # with the texts as they were before this flush
                head.mark(stood.get(marks[key][0]), indexed=marks[key][1])
            if key in changes:
                was_linked = head.copies
                head.change(*changes[key])
                if was_linked and not head.copies and head.is_indexed:
                    self.unlinked.append(head.url)
            self._put(txn, key, head, was)

    def _put(self, txn: Any, key: bytes, head: _Head, was: int) -> None:
        head.state = head.due_state()
        if was != head.state:
            if was in self._states:
                txn.delete(key, db=self._states[was])
            if head.state in self._states:
                txn.put(key, b"", db=self._states[head.state])
        if head.copies or head.is_indexed:
            txn.put(key, head.encode(), db=self._heads)
        else:
            txn.delete(key, db=self._heads)

    def texts(self, normalized: str) -> list[str]:
        """The flushed texts of links to a page, repeated by weight."""
        return next(self.links_to([normalized])).texts

    def links_to(self, normalized: Iterable[str]) -> Iterator[LinkTexts]:
        """The flushed links to many pages from one snapshot, in their order.

        A text is repeated 1 + log2(pages) times, at most `MAX_COPIES`: "Home" in the navigation of
        ten thousand pages counts 4 times as much as "remote access" on one, not 10,000 times. A
        text that many targets share ("next") needs no rule: BM25 weighs words by their rarity.
        """
        with self._env.begin(db=self._pairs) as txn, txn.cursor() as cursor:
            for url in normalized:
                yield _texts(cursor, page_key(url))

    def standing(self, normalized: Iterable[str]) -> dict[str, Standing]:
        """The state of the flushed links to some pages."""
        with self._env.begin(db=self._heads) as txn:
            rows = ((url, txn.get(page_key(url))) for url in normalized)
            heads = ((url, _Head.decode(row) if row else _Head(url)) for url, row in rows)
            return {url: (head.copies, head.checksum) for url, head in heads}

    def numbers(self, normalized: Iterable[str]) -> list[int]:
        """How many pages link to each page; in any thread. 8 us each."""
        with self._growing:
            return [links.number for links in self.links_to(normalized)]

    def changed(
        self, limit: int, due_only: bool, without: Container[str] = ()
    ) -> list[tuple[str, LinkTexts]]:
        """Indexed pages whose link texts have doubled since they were indexed or, unless
        ``due_only``, have changed: the URL of each, and the links to it. Pages in ``without`` are
        left out."""
        found: list[tuple[str, LinkTexts]] = []
        with self._env.begin(db=self._pairs) as txn, txn.cursor() as pairs:
            for state in (DUE,) if due_only else (DUE, DIRTY):
                with txn.cursor(self._states[state]) as cursor:
                    for key in cursor.iternext(keys=True, values=False):
                        if len(found) >= limit:
                            return found
                        head = _Head.decode(txn.get(key, b"", db=self._heads))
                        if head.url not in without:
                            found.append((head.url, _texts(pairs, key)))
        return found

    def count_changed(self) -> int:
        """How many indexed pages have other texts since."""
        with self._env.begin() as txn:
            return sum(txn.stat(db)["entries"] for db in self._states.values())

    def withdraw(
        self,
        access: LinkAccess,
        pages: Iterable[tuple[str, str]],
        names: Callable[[], Iterable[str]] = tuple,
        stop: Callable[[], bool] = lambda: False,
    ) -> int:
        """Remove the texts that restricted pages have given to pages of other hosts; return the
        number of pages that gave some.

        ``pages`` are URL and exact form of all pages with links, several times if they were
        stored several times. A page that is not among them is known by its exact form, if it is one
        of ``names``; the texts of an unknown page are removed. Ends early once ``stop`` returns
        True.
        """
        known, done, hidden = array("Q"), 0, list[tuple[bytes, str]]()
        for url, name in pages:
            if stop():
                return done
            key = page_key(name)
            known.append(int.from_bytes(key, "big"))
            if access.hides(url):
                hidden.append((key, name))
            if len(hidden) == _PAGES_AT_ONCE:
                done += self._withdraw(access, hidden)
                hidden = []
        unknown = self._pages_beside(known)
        for name in names() if unknown else ():
            key = page_key(name)
            if key in unknown:
                unknown.discard(key)
                if access.hides(name):
                    hidden.append((key, name))
        hidden += [(key, "") for key in unknown]
        for start in range(0, len(hidden), _PAGES_AT_ONCE):
            done += self._withdraw(access, hidden[start : start + _PAGES_AT_ONCE])
        return done

    def _pages_beside(self, known: array[int]) -> set[bytes]:
        """The keys of pages that are not in ``known``."""
        import numpy as np  # 0.1 s; only for a table with newly restricted hosts

        own = array("Q")
        with self._env.begin() as txn, txn.cursor(self._pages) as cursor:
            own.extend(int.from_bytes(key, "big") for key in cursor.iternext(values=False))
        left: Any = np.setdiff1d(np.array(own, np.uint64), np.array(known, np.uint64))
        return {int(number).to_bytes(_TARGET, "big") for number in left}

    def _withdraw(self, access: LinkAccess, pages: Sequence[tuple[bytes, str]]) -> int:
        """``pages``: the exact form of each page by its key; with "" no text of the page stays."""
        left, gave = [*self.unlinked], 0

        def write(txn: Any) -> None:
            nonlocal gave
            gave, counts = 0, Counter[bytes]()
            for key, here in pages:
                row = txn.get(key, db=self._pages)
                if row is None:
                    continue
                ids = set(_split(row))
                kept = {one for one in ids if here and access.keeps(here, self._target(txn, one))}
                if kept != ids:
                    gave += 1
                    counts.subtract(map(self._now, ids - kept))
                    if kept:
                        txn.put(key, _joined(kept), db=self._pages)
                    else:
                        txn.delete(key, db=self._pages)
            self._add(txn, counts, {}, {}, {})

        self._in_transaction(write)
        self.unlinked = left  # the links are there as before
        return gave

    def _target(self, txn: Any, one: bytes) -> str:
        """The URL of the target of a pair, "" if it is not known."""
        record = txn.get(self._now(one)[:_TARGET], db=self._heads)
        return _Head.decode(record).url if record else ""

    def take(self, directory: Path, counts: Callable[[bytes], bool]) -> None:
        """Add the texts of another table, which is only read. Pages that do not count, by their
        `page_key`, are left out. Raises CrawlDirError."""
        if not (directory / "data.mdb").exists():
            return
        try:
            with (
                lmdb.open(str(directory), readonly=True, lock=False, max_dbs=6) as env,
                env.begin() as reading,
            ):
                other = _Content.of(env, reading)

                def write(txn: Any) -> None:
                    left = other.counts.copy()
                    for page, given in other.pages():
                        ids = list(map(other.now, _split(given)))
                        if counts(page):
                            txn.put(page, _joined(ids), db=self._pages)
                        else:
                            left.subtract(ids)
                    self._add(txn, left, other.texts, other.urls, {})

                self._in_transaction(write)
        except lmdb.Error as error:
            raise CrawlDirError(f"{directory}: the anchor table cannot be read: {error}") from error

    def sizes(self) -> dict[str, int]:
        """How many pairs, pages and targets there are."""
        names = {"pairs": self._pairs, "pages": self._pages, "targets": self._heads}
        with self._env.begin() as txn:
            return {name: txn.stat(db)["entries"] for name, db in names.items()}

    def close(self, *, tidy: bool = False) -> None:
        """Close the table; unwritten texts are lost. With ``tidy``, first rewrite a table that has
        much unused space."""
        directory = self._directory
        tidied = tidy and self._is_wasteful() and self._copied(directory / _ANEW)
        self._env.close()
        if tidied:
            with suppress(OSError):  # then it stays as it was
                (directory / _ANEW / "data.mdb").replace(directory / "data.mdb")
                sync_folder(directory)
        shutil.rmtree(directory / _ANEW, ignore_errors=True)

    def _tables(self) -> dict[bytes, Any]:
        states = {b"dirty": self._states[DIRTY], b"due": self._states[DUE]}
        tables = {b"pairs": self._pairs, b"pages": self._pages, b"heads": self._heads}
        return tables | {b"moved": self._moves} | states

    def _is_wasteful(self) -> bool:
        with self._env.begin() as txn:
            pages = txn.stat(self._pages)["entries"]
            stats = [txn.stat(db) for db in self._tables().values()]
        size = stats[0]["psize"]
        used = size * sum(
            stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats
        )
        if shutil.disk_usage(self._directory).free < used + ROOM_TO_COPY:
            return False
        if self._added * ADDED_SHARE > pages and used <= ALWAYS_COPIED:
            return True
        wasted = size * (self._env.info()["last_pgno"] + 1) - used
        return wasted >= max(LEAST_WASTE, used // 2) and used <= MOST_COPIED

    def _copied(self, directory: Path) -> bool:
        """Whether all rows are in a table in ``directory``, and durable; not where the disk is
        full, for one."""
        try:
            size = self._env.info()["map_size"]
            with lmdb.open(str(directory), map_size=size, max_dbs=6, sync=False) as copy:
                for name, db in self._tables().items():
                    with self._env.begin() as txn, copy.begin(write=True) as writing:
                        there = copy.open_db(name, writing)
                        writing.cursor(there).putmulti(txn.cursor(db), append=True)
                copy.sync(True)
        except (lmdb.Error, OSError):
            return False
        return True


@dataclass(slots=True)
class _Head:
    """The state of a target: the number of ``copies`` of its texts that the index would have now,
    and their checksum; and both as they were indexed.

    A page is *dirty* if its copies have changed since it was indexed, and *due* if they have
    doubled. A page is due about 9 times at most.
    """

    url: str
    state: int = CLEAN
    is_indexed: bool = False
    copies: int = 0
    checksum: int = 0
    indexed_copies: int = 0
    indexed_checksum: int = 0

    _FORM = struct.Struct("<B?IIII")

    @classmethod
    def decode(cls, record: bytes) -> _Head:
        return cls(record[cls._FORM.size :].decode(), *cls._FORM.unpack_from(record))

    def encode(self) -> bytes:
        numbers = self.copies, self.checksum, self.indexed_copies, self.indexed_checksum
        return self._FORM.pack(self.state, self.is_indexed, *numbers) + self.url.encode(
            "utf-8", "replace"
        )

    def mark(self, stood: Standing | None, *, indexed: bool) -> None:
        self.is_indexed = indexed
        self.indexed_copies, self.indexed_checksum = stood or (self.copies, self.checksum)

    def change(self, copies: int, checksum: int) -> None:
        self.copies = max(0, self.copies + copies)
        self.checksum = (self.checksum + checksum) & 0xFFFFFFFF

    def due_state(self) -> int:
        if not self.is_indexed:
            return CLEAN
        if (self.copies, self.checksum) == (self.indexed_copies, self.indexed_checksum):
            return CLEAN
        return DUE if self.copies >= max(1, 2 * self.indexed_copies) else DIRTY


@dataclass(slots=True)
class _Content:
    """The whole content of a table: pages by pair, texts by pair, URLs by target, pairs by page."""

    counts: Counter[bytes]
    texts: Mapping[bytes, bytes]
    urls: Mapping[bytes, str]
    pages: Callable[[], Iterable[tuple[bytes, bytes]]]
    moved: Mapping[bytes, bytes]

    def now(self, one: bytes) -> bytes:
        """A pair that a page gave, of the URL to which its target has moved."""
        return self.moved.get(one[:_TARGET], one[:_TARGET]) + one[_TARGET:]

    @classmethod
    def of(cls, env: Any, txn: Any) -> _Content:
        pairs, pages, heads, moved = (
            env.open_db(name, txn, create=False)
            for name in (b"pairs", b"pages", b"heads", b"moved")
        )
        rows = dict(txn.cursor(pairs))
        return cls(
            Counter({one: _COUNT.unpack_from(row)[0] for one, row in rows.items()}),
            {one: row[_COUNT.size :] for one, row in rows.items()},
            {key: _Head.decode(record).url for key, record in txn.cursor(heads)},
            pages=lambda: txn.cursor(pages),
            moved=dict(txn.cursor(moved)),
        )


def _moved_in(env: Any, db: Any) -> dict[bytes, bytes]:
    with env.begin(db=db) as txn:
        return dict(txn.cursor())


class _Ids(dict[str, bytes]):
    """The 12 bytes of a target and an anchor text, as `_written`, computed once a flush; b"" for a
    text that says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[bytes, bytes] = {}
        self.urls: dict[bytes, str] = {}
        self._keys: dict[str, bytes] = {}

    def __missing__(self, line: str) -> bytes:
        target, _, anchor = line.partition("\t")
        text = " ".join(anchor.split())
        found = b""
        if len(text) <= MAX_TEXT and (text[:1].isalnum() or any(map(str.isalnum, text))):
            key = self._keys.get(target)
            if key is None:
                key = self._keys[target] = page_key(target)
                self.urls[key] = target
            encoded = text.encode("utf-8", "replace")
            found = key + zlib.crc32(encoded).to_bytes(4, "big")
            self.texts[found] = encoded
        self[line] = found
        return found


def _written(links: Collection[tuple[str, str]]) -> str:
    """Targets and anchor texts, each pair on a line and once. Thousands of pages wait: one of the
    JDK's documentation takes 3.3 KB so, its pairs 11.8."""
    pairs = {*links}
    written = "\n".join(map("\t".join, pairs))
    if written.count("\t") != len(pairs) or written.count("\n") != len(pairs) - 1:
        pairs = {(target, " ".join(text.split())) for target, text in pairs}
        written = "\n".join(map("\t".join, pairs))
    return written


def _copies(pages: int) -> int:
    """Copies of a text in the index: 1 + floor(log2(pages)), 0 for none."""
    if pages >= 1 << MAX_COPIES - 1:
        return MAX_COPIES
    return pages.bit_length() if pages > 0 else 0


def _texts(cursor: Any, key: bytes) -> LinkTexts:
    found: list[tuple[int, bytes]] = []
    if cursor.set_range(key):
        for one, row in cursor:
            if not one.startswith(key):
                break
            found.append((-_COUNT.unpack_from(row)[0], row[_COUNT.size :]))
    found.sort()
    texts: list[str] = []
    size = 0
    for count, text in found[:MAX_TEXTS]:
        size += len(text)
        if size > MAX_TEXTS_BYTES:
            break
        texts += [text.decode()] * _copies(-count)
    return LinkTexts(texts, -sum(count for count, _ in found))


def _joined(ids: Iterable[bytes]) -> bytes:
    """The pairs of a page: of each target its 8 bytes, the number of texts, and 4 bytes a text."""
    row, last, number = bytearray(), b"", 0
    for one in sorted({*ids}):
        target = one[:_TARGET]
        if target != last or row[number] == _MOST_TEXTS:
            last, number = target, len(row) + _TARGET
            row += target + b"\x00"
        row[number] += 1
        row += one[_TARGET:]
    return bytes(row)


def _split(row: bytes) -> Iterator[bytes]:
    """The pairs of a page, 12 bytes each."""
    at = 0
    while at < len(row):
        target, texts = row[at : at + _TARGET], at + _TARGET + 1
        at = texts + _TEXT * row[texts - 1]
        for start in range(texts, at, _TEXT):
            yield target + row[start : start + _TEXT]


def page_key(normalized: str) -> bytes:
    """The key of a page or target in the table, by its URL."""
    return blake2b(normalized.encode("utf-8", "replace"), digest_size=_TARGET).digest()
