"""Anchor texts: what other pages call a page, often in better words than its own.

They are found on other pages, before and after the page itself is indexed. So they are kept in an
LMDB table beside the index, by target::

    anchors.add([("http://wiki.example/vpn", "remote access"), ...])   # once a page, all its links
    anchors.flush()
    anchors.texts("http://wiki.example/vpn")     # ["remote access", "remote access", "VPN how-to"]

anchor_target.py says how a text weighs and when a page is due to be indexed again. Texts, what was
indexed of them and what is due change in one transaction, so an interrupted crawl goes on.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path

import lmdb

from larmspider.errors import CrawlDirError

# What is known of the links to one page: their texts, and what of it the index has.
#
# How a text weighs. A navigation bar says "Home" on ten thousand pages, one colleague says "remote
# access" once. So a text is repeated 1 + log2(links) times, at most `COPIES_LIMIT`: the bar speaks
# 4 times as loud as the colleague, not 10,000 times. And a text that many different targets share
# ("next", "index") needs no rule: BM25 weighs each word by its rarity among the documents'
# anchors.
#
# When a page is due. A record remembers how many copies its page was indexed with. It is *dirty*
# when
# that has changed and *due* when it has doubled; 256 copies are the most there can be, so being
# due
# costs a page at most 9 more rounds, however many links point to it::
#
#     target = AnchorTarget("http://wiki.example/vpn", indexed=1)
#     target.merge({"remote access": 2})
#     target.texts(), target.due_state()     # ["remote access", "remote access"], DUE

TEXTS_LIMIT = 64
"""Distinct texts kept for a target; later ones are dropped."""
TEXTS_LIMIT_BYTES = 2_048
"""UTF-8 bytes of all texts of a target."""
TEXT_LIMIT = 128
"""A longer text is a paragraph that someone made a link of; it is dropped. In characters."""
COPIES_LIMIT = 4
"""Copies of one text in the index, reached at `_COUNT_LIMIT` links; beyond it nobody counts."""
_COUNT_LIMIT = 1 << (COPIES_LIMIT - 1)

CLEAN, DIRTY, DUE = 0, 1, 2

_HEADER = struct.Struct("<BH")  # state, copies indexed
NOT_INDEXED = 0xFFFF


@dataclass(slots=True)
class AnchorTarget:
    """A record: header, then UTF-8 lines: the canonical URL, then text and count in turn."""

    normalized: str
    state: int = CLEAN
    indexed: int = NOT_INDEXED
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def decode(cls, record: bytes) -> AnchorTarget:
        state, indexed = _HEADER.unpack_from(record)
        lines = record[_HEADER.size :].decode().split("\n")
        return cls(
            lines[0], state, indexed, dict(zip(lines[1::2], map(int, lines[2::2]), strict=True))
        )

    def encode(self) -> bytes:
        lines = [self.normalized]
        for text, count in self.counts.items():
            lines += (text, str(count))
        return _HEADER.pack(self.state, self.indexed) + "\n".join(lines).encode()

    def merge(self, texts: Mapping[str, int]) -> bool:
        """Take in new texts; True if anything changed."""
        changed = False
        room = TEXTS_LIMIT_BYTES - sum(len(text.encode()) for text in self.counts)
        for text, count in texts.items():
            known = self.counts.get(text)
            if known is None:
                room_left = room - len(text.encode())
                if len(self.counts) >= TEXTS_LIMIT or room_left < 0:
                    continue
                room, known = room_left, 0
            if known < _COUNT_LIMIT:
                self.counts[text] = min(_COUNT_LIMIT, known + count)
                changed = True
        return changed

    def copies(self) -> int:
        # n.bit_length() is 1 + floor(log2(n))
        return sum(count.bit_length() for count in self.counts.values())

    def texts(self) -> list[str]:
        return [text for text, count in self.counts.items() for _ in range(count.bit_length())]

    def due_state(self) -> int:
        if self.indexed == NOT_INDEXED:
            return CLEAN
        copies = self.copies()
        if copies == self.indexed:
            return CLEAN
        return DUE if copies >= max(1, 2 * self.indexed) else DIRTY


class AnchorTable:
    """The table in ``directory``. `add` may run in one thread while another runs the rest."""

    def __init__(self, directory: Path, map_bytes: int = 1 << 26) -> None:
        """Open or create it. ``map_bytes`` is the file's first limit; it doubles by itself.

        Raises CrawlDirError where it cannot be opened.
        """
        directory.mkdir(parents=True, exist_ok=True)
        try:
            # metasync: a crash of the machine may undo the last commit, never damage the table
            self._env = lmdb.open(str(directory), map_size=map_bytes, max_dbs=3, metasync=False)
            self._env.reader_check()  # forget readers that were killed
            self._targets = self._env.open_db(b"targets")
            self._states = {
                DIRTY: self._env.open_db(b"dirty"),
                DUE: self._env.open_db(b"due"),
            }
        except lmdb.Error as error:
            raise CrawlDirError(
                f"{directory}: the anchor table cannot be opened: {error}"
            ) from error
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def add(self, links: Iterable[tuple[str, str]]) -> None:
        """Take in (canonical target, anchor text), all links of one page; written by `flush`.

        Leave out a page's links to itself: navigation. 0.2 us a link, because only the distinct
        pairs of a whole batch are looked at more closely.
        """
        with self._lock:
            self._pairs.update(links)

    def __len__(self) -> int:
        """Distinct pairs that wait for `flush`."""
        return len(self._pairs)

    def flush(self, indexed: Mapping[str, int | None] | None = None) -> None:
        """Write what waits, in one transaction, keys in order.

        ``indexed`` names documents that were indexed since (canonical URL: copies of anchor texts
        they were indexed with) or removed (None).

        Raises CrawlDirError where the disk refuses; nothing is lost by that: flush again.
        """
        with self._lock:
            pairs, self._pairs = self._pairs, Counter()
        try:
            batch = _by_key(pairs, indexed or {})
            while True:
                try:
                    self._write(batch)
                except lmdb.MapFullError:
                    self._env.set_mapsize(2 * self._env.info()["map_size"])
                else:
                    return
        except BaseException as error:
            with self._lock:
                self._pairs.update(pairs)
            if isinstance(error, lmdb.Error):  # the disk is full, for one
                raise CrawlDirError(f"{self._env.path()}: cannot write anchors: {error}") from error
            raise

    def _write(self, batch: list[tuple[bytes, _Change]]) -> None:
        with self._env.begin(write=True, db=self._targets) as txn:
            for key, change in batch:
                record = txn.get(key)
                target = AnchorTarget.decode(record) if record else AnchorTarget(change.normalized)
                changed = target.merge(change.texts)
                if change.marked:
                    target.indexed = NOT_INDEXED if change.copies is None else change.copies
                    changed = True
                if not changed:
                    continue
                state, target.state = target.state, target.due_state()
                if state != target.state:
                    if state in self._states:
                        txn.delete(key, db=self._states[state])
                    if target.state in self._states:
                        txn.put(key, b"", db=self._states[target.state])
                txn.put(key, target.encode())

    def texts(self, normalized: str) -> list[str]:
        """The flushed texts that point to a page, repeated as they weigh."""
        with self._env.begin(db=self._targets) as txn:
            record = txn.get(_key(normalized))
        return AnchorTarget.decode(record).texts() if record else []

    def texts_of(self, normalized: Iterable[str]) -> Iterator[list[str]]:
        """`texts` of many pages from one snapshot, in their order."""
        with self._env.begin(db=self._targets) as txn:
            for url in normalized:
                record = txn.get(_key(url))
                yield AnchorTarget.decode(record).texts() if record else []

    def changed(self, limit: int, due_only: bool) -> list[tuple[str, list[str]]]:
        """Indexed pages whose texts have doubled, or changed at all, since: URL and texts."""
        found: list[tuple[str, list[str]]] = []
        with self._env.begin(db=self._targets) as txn:
            for state in (DUE,) if due_only else (DUE, DIRTY):
                with txn.cursor(self._states[state]) as cursor:
                    for key in cursor.iternext(keys=True, values=False):
                        if len(found) >= limit:
                            return found
                        target = AnchorTarget.decode(txn.get(key, b""))
                        found.append((target.normalized, target.texts()))
        return found

    def close(self) -> None:
        """Close the table; what was not flushed is lost."""
        self._env.close()


@dataclass(slots=True)
class _Change:
    normalized: str
    texts: dict[str, int] = field(default_factory=dict)
    marked: bool = False
    copies: int | None = None


def _by_key(
    pairs: Mapping[tuple[str, str], int], indexed: Mapping[str, int | None]
) -> list[tuple[bytes, _Change]]:
    texts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (target, anchor), count in pairs.items():
        text = " ".join(anchor.split()).encode("utf-8", "replace").decode()
        if len(text) <= TEXT_LIMIT and any(map(str.isalnum, text)):
            texts[target][text] = texts[target].get(text, 0) + count
    changes = {url: _Change(url, found) for url, found in texts.items()}
    for url, copies in indexed.items():
        change = changes.setdefault(url, _Change(url))
        change.marked, change.copies = True, copies
    return sorted(((_key(url), change) for url, change in changes.items()), key=itemgetter(0))


def _key(normalized: str) -> bytes:
    return blake2b(normalized.encode("utf-8", "replace"), digest_size=16).digest()
