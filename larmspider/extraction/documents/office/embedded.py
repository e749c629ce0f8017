"""Documents that lie in documents of Office: parts of the document (parts.py).

Found are the targets of relationships of the kinds package, oleObject and aFChunk, wherever in the
document these begin, and objects of OpenDocument that are OLE files. An OLE wrapper is unpacked: it
holds an Office document, or any file that was inserted as a symbol (MS-OLEDS 2.3.6). Embedded
documents in a file of Office 97 are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename, splitext

from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.office.relationships import Package
from larmspider.extraction.documents.ole import SIGNATURE, opened
from larmspider.extraction.documents.parts import Budget, Member, or_why
from larmspider.extraction.documents.reading import Unread
from larmspider.urls.media_types import module_of

_KINDS = ("package", "oleobject", "afchunk")
_CHUNKS = ("text/", "application/rtf", "application/xhtml+xml", "application/xml", "message/rfc822")
_PLAIN = frozenset(
    (
        *(".xml", ".rels", ".vml", ".png", ".jpeg", ".jpg", ".gif", ".emf", ".wmf", ".tif"),
        *(".tiff", ".svg", ".fntdata", ".odttf", ".wdp", ".xsd", ".rdf", ".svm", ".mp4", ".mp3"),
    )
)
"""Extensions of parts that are not documents; a file that has no others holds none."""
_OLE_OBJECT = re.compile(rb'<[^<>]*"application/vnd\.sun\.star\.oleobject"[^<>]*>')
_FULL_PATH = re.compile(rb'full-path="([^"]+)"')


def is_word(mime: str) -> bool:
    return "word" in mime and module_of(mime) == "office"


def is_chunk(mime: str) -> bool:
    """Whether a chunk of this type is text of the document that it lies in."""
    return is_word(mime) or mime.startswith(_CHUNKS)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    if body.startswith(SIGNATURE):
        return
    archive = ZipReader(body, budget)
    if not any(map(_may_be_embedded, archive.names)):
        return
    package = Package(archive)
    found = _of_opendocument(package) if package.by_name else []
    for part, kind in [*found, *_related(package)]:
        data = or_why(lambda: archive.read(part))  # noqa: B023
        if isinstance(data, Unread):
            yield Member(part, data)
        elif not (kind == "afchunk" and is_chunk(document_type(data, part))):
            yield Member(*_unwrapped(part, data))


def _may_be_embedded(name: str) -> bool:
    extension = splitext(name.lower())[1]
    if not extension:
        return name.startswith("Object ")
    return extension not in _PLAIN or "/embeddings/" in name


def _related(package: Package) -> Iterator[tuple[str, str]]:
    left, seen = [package.main], {package.main}
    while left:
        for one in package.related(left.pop()):
            if not one.external and one.target not in seen:
                seen.add(one.target)
                if one.kind in _KINDS:
                    yield one.target, one.kind
                else:
                    left.append(one.target)


def _of_opendocument(package: Package) -> Iterator[tuple[str, str]]:
    if manifest := package.name("META-INF/manifest.xml"):
        for entry in _OLE_OBJECT.findall(package.archive.read(manifest)):
            path = _FULL_PATH.search(entry)
            if path and (name := package.name(path[1].decode("utf-8", "replace"))):
                yield name, ""


def _unwrapped(part: str, data: bytes) -> tuple[str, bytes]:
    """Name and bytes of the file that an OLE file wraps; if it wraps none, of the OLE file
    itself."""
    if data.startswith(SIGNATURE):
        try:
            with opened(data) as file:
                for stream in ("Package", "CONTENTS", "EmbeddedOdf"):
                    if file.exists(stream):
                        return part, file.openstream(stream).read()
                if file.exists("\x01Ole10Native"):
                    name, inside = _native(file.openstream("\x01Ole10Native").read())
                    return f"{part}/{name}" if name else part, inside
        except Unread:
            pass  # the reader of this part reports it
    return part, data


def _native(stream: bytes) -> tuple[str, bytes]:
    """Name and bytes of the file in the stream: size, 2 bytes, two names, 8 bytes, a path with its
    length, the file with its length."""
    label, _, rest = stream[6:].partition(b"\0")
    _, _, rest = rest.partition(b"\0")
    start = 8 + int.from_bytes(rest[4:8], "little")
    size = int.from_bytes(rest[start : start + 4], "little")
    inside = rest[start + 4 : start + 4 + size]
    if not inside:
        return "", stream[4:]
    return basename(label.decode("cp1252", "replace").replace("\\", "/")), inside
