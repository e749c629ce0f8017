"""Archives: zip, tar and compressed files, whose members are parts of the document (parts.py)."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.ole import SIGNATURE, refuse_encrypted
from larmspider.extraction.documents.parts import MAX_MEMBERS, Budget, Member, or_why
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Outcome, Page

_DAMAGES = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(NotImplementedError, ValueError, IndexError, RuntimeError),
)
_OPENERS: dict[str, Any] = {
    "application/gzip": gzip.open,
    "application/x-bzip2": bz2.open,
    "application/x-xz": lzma.open,
}
_UNPACKED = ("gz", "bz2", "xz", "z")


class ZipReader:
    """The members of a zip file by name, within the limits. Raises Unread."""

    def __init__(self, body: bytes, budget: Budget | None = None) -> None:
        self.budget = Budget(len(body)) if budget is None else budget
        if body.startswith(SIGNATURE):
            refuse_encrypted(body)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except _DAMAGES as error:
            raise Unread(Outcome.DAMAGED, f"the zip file cannot be read: {error}") from None
        self.infos = self._zip.infolist()[: MAX_MEMBERS + 1]
        self.names = frozenset(info.filename for info in self.infos)

    def read(self, name: str | zipfile.ZipInfo) -> bytes:
        info = self._zip.getinfo(name) if isinstance(name, str) else name
        if info.flag_bits & 1:
            raise Unread(Outcome.ENCRYPTED, "needs a password")
        try:
            with self._zip.open(info) as file:
                return self.budget.read(file)
        except _DAMAGES as error:
            raise Unread(Outcome.DAMAGED, f"{info.filename} cannot be read: {error}") from None

    def check(self) -> None:
        """Unpack every member, for a library that unpacks them itself and knows no limits."""
        for info in self.infos:
            self.read(info)


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """An archive has no text but the names of its members."""
    return Page(url)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    mime = document_type(body)
    if mime == "application/zip":
        reader = ZipReader(body, budget)
        for info in reader.infos:
            if not info.is_dir():
                yield info.filename, or_why(lambda: reader.read(info))  # noqa: B023 - called at once
    elif mime == "application/x-tar":
        yield from _tar(body, budget)
    elif mime in _OPENERS:
        yield from _unpacked(body, mime, name, budget)
    else:
        raise Unread(Outcome.DAMAGED, "it is no archive")


def _unpacked(body: bytes, mime: str, name: str, budget: Budget) -> Iterator[Member]:
    try:
        with _OPENERS[mime](io.BytesIO(body)) as file:
            data = budget.read(file)
    except _DAMAGES as error:
        raise Unread(Outcome.DAMAGED, f"it cannot be unpacked: {error}") from None
    if document_type(data) == "application/x-tar":
        yield from _tar(data, budget, counted=True)
    else:
        stem, _, extension = name.rpartition(".")
        yield (stem if stem and extension.lower() in _UNPACKED else name or "content"), data


def _tar(body: bytes, budget: Budget, *, counted: bool = False) -> Iterator[Member]:
    """``counted``: the bytes of the members were counted when the archive was unpacked, but those
    that a sparse file leaves out."""
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as archive:
            for info in archive:
                file = archive.extractfile(info) if info.isfile() else None
                if file is not None:
                    with file:
                        budget.bytes += info.size if counted and not info.issparse() else 0
                        yield info.name.removeprefix("./"), or_why(lambda: budget.read(file))  # noqa: B023
    except _DAMAGES as error:
        raise Unread(Outcome.DAMAGED, f"the tar file cannot be read: {error}") from None
