"""The media type of a document by what it holds. Only processes that read documents ask, as this
opens OLE files.

    document_type(body, "a/plan.doc")                   # "application/msword": a stream says so
    document_type(body, url, "application/msword")      # the header's, if no stream says more

An OLE file has as many entries as its author likes: 1.5 MB of gzip took 4 s. The crawl's own
process asks formats.media_type, which looks at both ends alone; this answer replaces that one.
"""

from __future__ import annotations

import io

import olefile

from larmspider.extraction.formats import OLE_NAMES, media_type, type_in_zip, type_of_ole

_END_BYTES, _MAX_NAMES = 1 << 17, 10_000


def document_type(body: bytes, name: str = "", content_type: str = "") -> str:
    """As media_type() has it, for a container with a look inside."""
    return media_type(content_type, body, name, _type_inside)


def _type_inside(body: bytes) -> str:
    if body.startswith(b"PK"):
        return type_in_zip(body, body, _END_BYTES, _MAX_NAMES)
    try:
        with olefile.OleFileIO(io.BytesIO(body)) as file:
            names = {entry.name for entry in file.root.kids}
    except Exception:  # noqa: BLE001 - IndexError, struct.error and more, of a damaged one
        names = {name for name in OLE_NAMES if f"{name}\0\0".encode("utf-16-le") in body}
    return type_of_ole(names)
