"""Rights of documents that a connector reads. RightsReader reads only the rights again.

    headers = {RIGHTS_HEADER: packed(rights)}        # the connector's answer has them
    connected.access_of(Document("smb://nas/share/plan.odt", headers))

The rights come with the document, in one request. Later passes read them without the document.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import msgpack

from larmspider import options
from larmspider.access.file_rights import files_of
from larmspider.access.lists import AccessList, UnreadableError
from larmspider.access.rights import Checked, Document, Rights
from larmspider.errors import ConfigError
from larmspider.plugin import load_class
from larmspider.urls.schemes import CONNECTED, scheme_of

if TYPE_CHECKING:
    from larmspider.options import Settings

RIGHTS_HEADER = "X-Document-Rights"
"""No server sends it: the header counts only for URLs with a connector, which makes the answer."""
_NAME = RIGHTS_HEADER.lower().encode()


class AwayError(Exception):
    """A source cannot be reached now, so its documents keep the rights that they had. ``below``:
    the folder whose documents these are, "" for the whole root."""

    def __init__(self, why: str, below: str = "") -> None:
        super().__init__(why)
        self.below = below


class RightsReader(Protocol):
    """Reads the rights of documents that are in the index, folder by folder. Called in a thread."""

    known: dict[Any, AccessList] | None
    """Lists that the reader remembers during a pass; None outside of one."""

    def root_of(self, name: str) -> str | None:
        """The share or folder that the document lies in: all its documents are reachable or away
        together. None if the document lies in none."""

    def is_mounted(self, root: str) -> bool:
        """Whether a root is there."""

    def files(self, folder: str, names: list[str]) -> Iterator[Checked]:
        """The documents of one folder. Raises AwayError."""

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        """Shares and folders to enter for the documents in ``folder``, the outermost first. Raises
        AwayError, UnreadableError."""


@lru_cache(4_096)
def packed(rights: Rights | str) -> str:
    """The value of RIGHTS_HEADER; ``rights``, with a tuple above, may be the reason why they cannot
    be read."""
    if isinstance(rights, str):
        return b64encode(msgpack.packb((rights, []))).decode()
    above = [(name, one.pack()) for name, one in rights.above]
    return b64encode(msgpack.packb((rights.list.pack(), above))).decode()


def unpacked(value: bytes, name: str) -> Rights:
    """The rights of the document ``name``. Raises UnreadableError."""
    return _unpacked(value)._replace(name=files_of(name))


@lru_cache(4_096)
def _unpacked(value: bytes) -> Rights:
    try:
        own, above = msgpack.unpackb(b64decode(value, validate=True))
        if isinstance(own, str):
            raise UnreadableError(own)
        outer = tuple((place, AccessList.unpack(one)) for place, one in above)
        return Rights(AccessList.unpack(own), "", outer)
    except UnreadableError:
        raise
    except (ValueError, TypeError, msgpack.UnpackException):
        raise UnreadableError("its stored rights are damaged") from None


class ConnectedRights:
    """Takes rights from the answers of connectors."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self._readers: dict[str, RightsReader] = {}

    @property
    def in_use(self) -> bool:
        """Whether a seed has a connector, or may have one."""
        if self._settings is None:
            return False
        start = options.text(self._settings, "LARM_START").strip().lower()
        return not start or start[0] == "@" or any(f"{name}://" in start for name in CONNECTED)

    def access_of(self, document: Document) -> Rights | None:
        """Raises UnreadableError."""
        if scheme_of(document.name) is None:
            return None
        if document.name.endswith("/"):
            raise UnreadableError("a folder's list is for operators")
        for key, values in (document.headers or {}).items():
            if key.lower() == _NAME and values:
                return unpacked(values[0], document.name)
        raise UnreadableError("its server has not given its rights")

    def reader_of(self, scheme: str) -> RightsReader | None:
        """The object that reads the rights of a scheme's documents; None without a connector.
        Raises ConfigError."""
        if scheme not in self._readers:
            found = None if self._settings is None else connector_of(self._settings, scheme)
            if found is None:
                return None
            self._readers[scheme] = found
        return self._readers[scheme]


def connector_of(settings: Settings, scheme: str) -> Any:
    """The connector of a scheme by LARM_CONNECTORS, None for none. Raises ConfigError."""
    path = options.mapping(settings, "LARM_CONNECTORS").get(scheme)
    return None if path is None else load_class(str(path)).from_settings(settings)


def check_connected(settings: Settings, seeds: Iterable[str]) -> None:
    """Raises ConfigError for a seed that no connector can read."""
    for seed in seeds:
        scheme = scheme_of(seed)
        if scheme is None:
            continue
        connector = connector_of(settings, scheme.name)
        if connector is None:
            raise ConfigError(f"start={seed}: LARM_CONNECTORS has none for {scheme.name}")
        if why := connector.why_not(seed):
            raise ConfigError(f"start={seed}: {why} (docs/files.md)")
