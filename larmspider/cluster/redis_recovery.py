"""A worker starts: is what lies on its disk of the crawl in Redis, and where had it got to?

    recovering = Recovering(committer, local, loading)
    record = recovering.take_up()       # the last commit, carried out; the disk agrees with it

Redis is right. What it has lost, as it came back without its last second, is forgotten here too;
what it has and the disk has not, as the worker was killed in between, comes from the commit record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from secrets import token_hex

from larmspider.cluster.commit import CommitRecord, Committer
from larmspider.cluster.loading import Loading
from larmspider.cluster.redis_local import LocalCopy
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.backend import FormatError

FORMAT = "larmspider frontier in Redis 1, {blocks} blocks"
_LENGTH = struct.Struct(">I")


class Recovering:
    """``crawl_id`` is of the crawl in Redis, once it was taken up."""

    def __init__(self, committer: Committer, local: LocalCopy, loading: Loading) -> None:
        self._committer, self._local, self._loading = committer, local, loading
        self._link, self._keys, self._files = committer.link, committer.keys, local.files
        self.crawl_id = ""

    def take_up(self) -> CommitRecord:
        """Raises FormatError, CrawlDirError where Redis holds another crawl than the files, or
        none any more."""
        worker = self._committer.worker
        self._same_crawl()
        self._committer.replay(worker)
        record = self._committer.read(worker)
        serial = self._serial_on_disk()
        if serial and not record.serial:
            raise CrawlDirError(
                f"Redis at {self._link.name} has nothing of worker {worker}, whose crawl is in"
                f" {self._files.path}: bring its data back, or start over with -a fresh=yes,yes"
            )
        self._local.wipe()
        if serial < record.serial:
            self._keep_visits(record)
        elif serial > record.serial:
            self._forget_visits()
        self._committer.serial = record.serial
        return record

    def mark(self) -> bytes:
        """Which commit of which crawl the files hold, after a commit."""
        return f"{self.crawl_id} {self._committer.serial}".encode()

    def _marked(self) -> tuple[str, str]:
        mark = self._files.get(b"redis", self._files.meta) or b""
        crawl, _, serial = mark.decode().partition(" ")
        return crawl, serial

    def _serial_on_disk(self) -> int:
        return int(self._marked()[1] or 0)

    def _same_crawl(self) -> None:
        name = self._keys.crawl
        wanted = FORMAT.format(blocks=self._keys.blocks)
        _, _, found, crawl = self._link.run(
            [
                ("SET", name("format"), wanted, "NX"),
                ("SET", name("id"), token_hex(8), "NX"),
                ("GET", name("format")),
                ("GET", name("id")),
            ]
        )
        if found.decode("utf-8", "replace") != wanted:
            raise FormatError(
                f"Redis at {self._link.name} holds a crawl of format {found!r} under"
                f" {self._keys.prefix!r}, this is {wanted!r}"
            )
        self.crawl_id = crawl.decode()
        known = self._marked()[0]
        if self._files.get(b"serial", self._files.meta) is not None and known != self.crawl_id:
            what = "another crawl than" if known else "a crawl without Redis, not"
            raise CrawlDirError(
                f"{self._files.path} holds {what} that in Redis at {self._link.name}: name another"
                " LARM_DIR, or start over with -a fresh=yes,yes"
            )

    def _keep_visits(self, record: CommitRecord) -> None:
        """The last commit was carried out in Redis, and did not come to the disk any more."""
        urls = self._files.urls
        self._local.write([(urls, key, visit) for key, visit in unpack_visits(record.visits)])

    def _forget_visits(self) -> None:
        """Redis has lost what it had not written to disk: so have the stores, then."""
        for block in range(self._keys.blocks):
            if next(self._local.own_visits(block), None) is not None:
                self._local.keep_visited(block, self._loading.members(block))
                self._local.purge({block: ()})


def pack_visits(visits: Iterable[tuple[bytes, bytes]]) -> bytes:
    """URL keys and records of URLs that came to their end, for the commit record."""
    return b"".join(key + _LENGTH.pack(len(record)) + record for key, record in visits)


def unpack_visits(data: bytes) -> list[tuple[bytes, bytes]]:
    """The reverse of pack_visits()."""
    visits, at = [], 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at + 16)
        visits.append((data[at : at + 16], data[at + 20 : at + 20 + length]))
        at += 20 + length
    return visits
