"""DummyReceiver: takes everything and keeps nothing; to see what the outbox alone costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from larmspider.pipelines.outbox.receiver import Receiver, Sent
from larmspider.pipelines.outbox.spool import Entry

if TYPE_CHECKING:
    from larmspider.options import Settings


class DummyReceiver(Receiver):
    """Counts entries only: the stats have the sent entries, as for each receiver."""

    wants_body = False

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls()

    def send(self, batch: Sequence[Entry]) -> Sent:
        return Sent()
