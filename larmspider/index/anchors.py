"""Anchor texts: what other pages call a page, often in better words than its own.

They come before and after the page itself is indexed, so they are kept in an LMDB table beside the
index, by target::

    anchors.add([("http://wiki.example/vpn", "remote access"), ...])   # once a page, all its links
    anchors.flush()
    anchors.texts("http://wiki.example/vpn")     # ["remote access", "remote access", "VPN how-to"]

AnchorTarget says how a text weighs and when a page is due to be indexed again. Texts, what was
indexed of them and what is due change in one transaction.
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

MAX_TEXTS = 64
"""Distinct texts kept for a target; later ones are dropped."""
MAX_TEXTS_BYTES = 2_048
"""All texts of a target together, in UTF-8."""
MAX_TEXT = 128
"""Characters; a longer text, a paragraph made a link, is dropped."""
MAX_COPIES = 4
"""Copies of one text in the index, reached at `_MAX_COUNT` links."""
_MAX_COUNT = 1 << (MAX_COPIES - 1)

CLEAN, DIRTY, DUE = 0, 1, 2

_HEADER = struct.Struct("<BH")  # state, copies indexed
NOT_INDEXED = 0xFFFF


class AnchorTable:
    """The table in ``directory``. `add` may run in one thread while another runs the rest."""

    def __init__(self, directory: Path, map_bytes: int = 1 << 26) -> None:
        """Open or create the table; its limit ``map_bytes`` doubles as needed. Raises
        CrawlDirError."""
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
        """Take in (canonical target, anchor text) of a page's links to other pages; `flush` writes
        them. 0.2 us a link: only the distinct pairs of a batch are examined."""
        with self._lock:
            self._pairs.update(links)

    def add_counts(self, normalized: str, texts: Mapping[str, int]) -> None:
        """Take in texts of links to a page, as often as another table has them."""
        with self._lock:
            self._pairs.update({(normalized, text): count for text, count in texts.items()})

    def __len__(self) -> int:
        """Distinct pairs since the last `flush`."""
        return len(self._pairs)

    def flush(self, indexed: Mapping[str, int | None] | None = None) -> None:
        """Write the pairs in one transaction, keys in order.

        ``indexed`` has the documents indexed since (canonical URL: copies of anchor texts) or
        removed (None). Raises CrawlDirError where the disk refuses; the pairs stay for the next
        flush.
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
        """The flushed texts of links to a page, repeated by weight."""
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
        """URL and texts of indexed pages whose texts have since doubled or, unless ``due_only``,
        changed."""
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
        """Close the table; unflushed pairs are lost."""
        self._env.close()


def targets_in(directory: Path) -> Iterator[AnchorTarget]:
    """All targets of the table in ``directory``, which is only read. Raises CrawlDirError."""
    if not (directory / "data.mdb").exists():
        return
    try:
        with (
            lmdb.open(str(directory), readonly=True, lock=False, max_dbs=3) as env,
            env.begin(db=env.open_db(b"targets", create=False)) as txn,
        ):
            for _, record in txn.cursor():
                yield AnchorTarget.decode(record)
    except lmdb.Error as error:
        raise CrawlDirError(f"{directory}: the anchor table cannot be read: {error}") from error


@dataclass(slots=True)
class AnchorTarget:
    """The texts of the links to one page, and how many copies of them the index has.

    A text is repeated 1 + log2(links) times, at most `MAX_COPIES`: "Home" in the navigation of ten
    thousand pages counts 4 times as much as "remote access" on one, not 10,000 times. A text that
    many targets share ("next") needs no rule: BM25 weighs words by their rarity.

    A page is *dirty* when its copies have changed since it was indexed, and *due* when they have
    doubled. There are at most 256, so being due costs a page at most 9 more rounds.

    A record is a header and UTF-8 lines: the canonical URL, then text and count in turn.
    """

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
        """Add texts; True if anything changed."""
        changed = False
        room = MAX_TEXTS_BYTES - sum(len(text.encode()) for text in self.counts)
        for text, count in texts.items():
            known = self.counts.get(text)
            if known is None:
                room_left = room - len(text.encode())
                if len(self.counts) >= MAX_TEXTS or room_left < 0:
                    continue
                room, known = room_left, 0
            if known < _MAX_COUNT:
                self.counts[text] = min(_MAX_COUNT, known + count)
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
        if len(text) <= MAX_TEXT and any(map(str.isalnum, text)):
            texts[target][text] = texts[target].get(text, 0) + count
    changes = {url: _Change(url, found) for url, found in texts.items()}
    for url, copies in indexed.items():
        change = changes.setdefault(url, _Change(url))
        change.marked, change.copies = True, copies
    return sorted(((_key(url), change) for url, change in changes.items()), key=itemgetter(0))


def _key(normalized: str) -> bytes:
    return blake2b(normalized.encode("utf-8", "replace"), digest_size=16).digest()
