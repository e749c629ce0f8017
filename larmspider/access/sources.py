"""All sources of rights of a crawl. The first source that says something about a document decides:
the operator's rules, what the server sent, the file system, the connector, then who pushed the
document."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.access.connected import ConnectedRights
from larmspider.access.file_rights import FileRights
from larmspider.access.lists import UnreadableError
from larmspider.access.pushed import PushedRights, Stored
from larmspider.access.rights import UNREADABLE, Document, Problems, Rights, Source
from larmspider.access.rules import Rules
from larmspider.access.sent import Sent
from larmspider.urls.file_urls import FileRoots

if TYPE_CHECKING:
    from larmspider.options import Settings


class Sources:
    """``problems`` counts the documents whose rights cannot be read."""

    def __init__(
        self,
        rules: Rules | None = None,
        sent: Sent | None = None,
        roots: FileRoots | None = None,
        count: Callable[[], object] = lambda: None,
        pushed: PushedRights | None = None,
        connected: ConnectedRights | None = None,
    ) -> None:
        """``count`` is called for each document whose rights cannot be read."""
        self.rules, self.sent = rules or Rules(), sent or Sent()
        self.files = FileRights(roots or FileRoots())
        self.has_files = bool(roots)
        self.connected = connected or ConnectedRights()
        self.pushed = pushed or PushedRights()
        self.problems, self.count = Problems(), count
        self._lock = threading.Lock()

    @classmethod
    def from_settings(cls, settings: Settings, pushed: Stored) -> Self:
        """``pushed``: as PushedRights has it, for a push collection. Raises ConfigError."""
        return cls(
            Rules.of(options.mapping(settings, "LARM_ACCESS_RULES")),
            Sent.of(options.mapping(settings, "LARM_ACCESS_SENT")),
            FileRoots.from_settings(settings),
            connected=ConnectedRights(settings),
            pushed=PushedRights(pushed if options.boolean(settings, "LARM_PUSH") else None),
        )

    def __bool__(self) -> bool:
        here = self.rules.lists or self.sent.places or self.has_files or self.pushed.stored
        return bool(here or self.connected.in_use)

    def access_of(self, document: Document) -> Rights | None:
        sources: tuple[Source, ...] = (
            self.rules,
            self.sent,
            self.files,
            self.connected,
            self.pushed,
        )
        try:
            for source in sources:
                if (found := source.access_of(document)) is not None:
                    return found
        except UnreadableError as error:
            if not document.name.endswith("/"):
                self.failed(document.name, str(error))
            return UNREADABLE
        return None

    def failed(self, name: str, why: str) -> None:
        with self._lock:
            self.problems.add(name, why)
        self.count()
