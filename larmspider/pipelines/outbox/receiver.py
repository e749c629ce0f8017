"""Receivers: send stored pages to other servers, one class for each kind of server.

    class ShelfReceiver(Receiver):
        def __init__(self, url: str) -> None:
            self.url = url

        @classmethod
        def from_settings(cls, settings: Settings) -> Self:
            return cls(options.text(settings, "MY_SHELF_URL"))

        def connect(self) -> None:
            self.shelf = Shelf(self.url)

        def send(self, batch: Sequence[Entry]) -> Sent:
            for entry in batch:
                self.shelf.put(entry.url, entry.stamp, entry.page)
            return Sent()

In ITEM_PIPELINES it is a store like any other. Its process (sender.py) has another object of the
class, and calls `connect` and `send` there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from larmspider.errors import LarmspiderError
from larmspider.items import Page, Removed
from larmspider.pipelines.outbox.outbox import Outbox
from larmspider.pipelines.outbox.spool import FOLDER, Entry
from larmspider.pipelines.store import Store
from larmspider.redaction import told

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from larmspider.index.access import Access
    from larmspider.options import Settings


class _ReplyError(LarmspiderError):
    """An error whose text may repeat a server's message: secrets are removed from it
    (redaction.py)."""

    def __init__(self, text: str) -> None:
        super().__init__(told(text))


class AwayError(_ReplyError):
    """The receiver cannot be reached, is busy or full: the batch is sent again, after ``secs``
    where the receiver has said when."""

    def __init__(self, text: str, secs: float = 0.0) -> None:
        super().__init__(text)
        self.secs = secs


class RefusedError(_ReplyError):
    """The receiver denies access, or holds unexpected data: the operator has to act. No crawl
    begins; a running crawl keeps its pages and tries again."""


class BatchError(_ReplyError):
    """The receiver took nothing of the batch, because the batch is too large or one entry is
    refused. The two halves of the batch are sent next. A single entry becomes a dead letter if the
    receiver takes other entries. An ``unfit`` entry always does, because it can never be accepted;
    for example, it is too large."""

    def __init__(self, text: str, *, unfit: bool = False) -> None:
        super().__init__(text)
        self.unfit = unfit


class Unfit(str):
    """A reason that concerns this entry alone, such as its size or a URL that is too long. The
    entry becomes a dead letter at once."""

    __slots__ = ()


@dataclass(slots=True)
class Sent:
    """The result of a batch, by the numbers of its entries: entries that the receiver ``rejected``,
    with the reason (`Unfit` or other), and entries to send ``again``. The receiver has the
    others."""

    rejected: Mapping[int, str] = field(default_factory=dict)
    again: Collection[int] = ()


class OutboxStore(Store):
    """Writes the spool."""

    files = (FOLDER,)
    _outbox: Outbox
    _leads = True
    """Whether this is the first receiver: its data is shared by all."""

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        store = cls()
        store._outbox = Outbox(crawler)
        return store

    def open_spider(self) -> None:
        self._outbox.open()

    def process_item(self, item: Any) -> Any:
        return super().process_item(item) if self._leads else item

    def write(self, page: Page) -> None:
        self._outbox.append(page)

    def remove(self, removed: Removed) -> None:
        if removed.reason:  # else another worker has the newest version, and sends it
            self._outbox.append(removed)

    def recovered(self, positions: Mapping[str, bytes]) -> None:
        self._outbox.recover(positions.get(FOLDER, b""))

    def checkpoint(self) -> tuple[str, bytes]:
        return FOLDER, self._outbox.flush()

    def commit(self) -> Coroutine[Any, Any, None] | None:
        return self._outbox.sync() if self._leads else None

    def committed(self, positions: Mapping[str, bytes]) -> None:
        if self._leads:
            self._outbox.committed(positions[FOLDER])

    def close_spider(self) -> None:
        self._outbox.close_spool()


class Receiver(OutboxStore):
    """Base of all receivers. ``send`` may get an entry again, also after newer ones, and by another
    worker: a receiver keeps the version with the largest stamp, and the stamp of a removal, too."""

    settings: ClassVar[tuple[str, ...]] = ()
    """The settings that from_settings() reads: the sender gets these alone."""
    look_at: ClassVar[str] = ""
    """The setting with its address, for error messages; "": the first of the settings."""
    wants_body: ClassVar[bool] = True
    wants_index: ClassVar[bool] = False
    """Whether an entry needs what an index of pages does (facts.py)."""
    max_entries: ClassVar[int] = 500
    max_bytes: ClassVar[int] = 16_000_000
    """Bytes of a batch."""
    left = 0
    """Documents to write again once the crawl ends."""

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Opens nothing. Raises ConfigError."""

    def begin(self, spool: Path) -> None:
        """Called once, before all other methods: the receiver gets the entries of this spool."""

    def connect(self) -> None:
        """Make sure that a batch can be sent; also after an error, again. Raises AwayError,
        RefusedError."""

    @abstractmethod
    def send(self, batch: Sequence[Entry]) -> Sent:
        """Raises AwayError, RefusedError, BatchError; then, and after any other error, connect()
        is called before the next."""

    def catch_up(self) -> None:
        """Write some of the documents that are ``left`` at the end of a crawl. Raises as send()."""

    def behind(self) -> int:
        """Documents whose access lists have changed since they were sent, as far as the crawl's
        directory says. Raises CrawlDirError, OSError."""
        return 0

    def renew_access(self) -> None:
        """Write some of the documents that are `behind`. Raises as send()."""

    @classmethod
    def seen_by(cls, crawls: Sequence[Path], access: Access) -> dict[str, Any]:
        """The part of a query to this server that leaves out the documents that ``access`` hides,
        for `scrapy outbox --seen-by`; {} for a server without access lists. Raises
        CrawlDirError."""
        return {}

    def reindex(self) -> str:
        """Rebuild the receiver's index, for `scrapy outbox --reindex`. Returns the result in words;
        "" for a receiver that needs no rebuild. Raises as connect()."""
        return ""

    def close(self) -> None:
        """May be called at any time, and twice."""

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        receiver = cls.from_settings(crawler.settings)
        receiver._outbox = Outbox.of(crawler)
        receiver._leads = receiver._outbox.add(cls)
        return receiver
