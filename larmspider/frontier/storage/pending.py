"""The batch of changes since the last commit, as a layer over the database.

A URL that is added and fetched within one checkpoint interval never touches the disk's queue: its
two changes cancel here.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Pending:
    """Changes by named database; None in ``queue`` marks a deletion."""

    urls: dict[bytes, bytes] = field(default_factory=dict)
    queue: dict[bytes, bytes | None] = field(default_factory=dict)
    hosts: dict[bytes, bytes] = field(default_factory=dict)
    meta: dict[bytes, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.urls) + len(self.queue) + len(self.hosts) + len(self.meta)

    def over(self, older: Pending) -> Pending:
        """Both as one batch; where both name a key, this one, being the newer, holds."""
        older.urls.update(self.urls)
        older.queue.update(self.queue)
        older.hosts.update(self.hosts)
        older.meta.update(self.meta)
        return older
