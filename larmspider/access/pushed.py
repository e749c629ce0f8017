"""Rights that were sent with a document that was pushed (docs/server.md).

    pushed = PushedRights(lambda: [("http://hr.example/pay", ["group:hr"])])
    pushed.access_of(Document(name, headers={HEADER: [b'["group:hr"]']}))
    dict(pushed.lists())          # {"http://hr.example/pay": Rights(...)}

The crawl of a push collection answers its own requests, so no server can send this header. Without
it a document has no list of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from larmspider.access.lists import AccessList, UnreadableError
from larmspider.access.rights import UNREADABLE, Document, Rights
from larmspider.errors import ConfigError

Stored: TypeAlias = Callable[[], Iterable[tuple[str, Sequence[str]]]]

HEADER = b"X-Larmspider-Access"


def header_value(principals: Sequence[str]) -> bytes:
    return json.dumps(list(principals)).encode()


class PushedRights:
    """``stored``: the stored documents of a push collection that have principals, by name; None:
    another crawl."""

    def __init__(self, stored: Stored | None = None) -> None:
        self.stored = stored

    def access_of(self, document: Document) -> Rights | None:
        """Raises UnreadableError."""
        if self.stored is None or document.headers is None:
            return None
        for name, values in document.headers.items():
            if name == HEADER:
                return _rights(json.loads(values[0]))
        return None

    def lists(self) -> Iterator[tuple[str, Rights]]:
        """The rights of stored documents, by name. Raises CrawlDirError."""
        for name, principals in self.stored() if self.stored is not None else ():
            try:
                yield name, _rights(principals)
            except UnreadableError:
                yield name, UNREADABLE


def _rights(principals: Sequence[str]) -> Rights:
    try:
        return Rights(AccessList.simple(principals))
    except ConfigError as error:
        raise UnreadableError(str(error)) from None
