"""The media type of a document by its content. Only processes that read documents call this,
because it opens zip and OLE files.

    document_type(body, "a/plan.doc")                   # "application/msword": a stream says so
    document_type(body, url, "application/msword")      # the header's, if no stream says more

The relationships of a package name the part that is the document, and its content types give the
part's type (ECMA-376-2 9.1, 9.3). Names of parts do not matter. An OLE file has no limit of
entries: 1.5 MB of gzip took 4 s. The crawl's own process calls body_type.media_type, which looks at
both ends alone; this answer replaces it.
"""

from __future__ import annotations

import io
import re
import zipfile
from posixpath import normpath, splitext

import olefile

from larmspider.extraction.body_type import (
    OLE_NAMES,
    ZIP,
    media_type,
    type_in_zip,
    type_of_names,
    type_of_ole,
)
from larmspider.extraction.documents.broken_zip import is_listed_within, with_list
from larmspider.urls.media_types import ODF, OOXML, reader_of

_END_BYTES, _MAX_NAMES = 1 << 17, 10_000
_COMMENT_BYTES = (1 << 16) + 22
"""Bytes at the end of a zip file in which the head of its list lies (APPNOTE 4.3.16)."""
_MAX_LIST = 1_000_000
"""Bytes up to which a list of members is read whole, which takes up to 0.2 s. 10,000 names have
about this size."""
_MAX_BYTES = 4_000_000
"""Bytes read of a member that lists parts; such a member has some 1,000 bytes."""
_INSTALLER = "000C1084-0000-0000-C000-000000000046"
"""The class of a package of Windows Installer (MS-CFB 2.6.4)."""
_ELEMENT = re.compile(r"<(?:\w+:)?(Override|Default|Relationship)\b([^<>]*+)>")
_ATTRIBUTE = re.compile(r"""(?<![\w:])([\w:]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)')""")
_MAIN = re.compile(r"(.+?)(?:\.main)?\+xml")
_KNOWN = {
    f"application/vnd.ms-visio.{kind}{macros}": "application/vnd.ms-visio.drawing"
    for kind in ("drawing", "template", "stencil")
    for macros in ("", ".macroenabled")
} | {
    "application/vnd.ms-package.xps-fixeddocumentsequence": "application/vnd.ms-xpsdocument",
    "application/vnd.ms-excel.sheet.binary.macroenabled.main": (
        "application/vnd.ms-excel.sheet.binary.macroenabled.12"
    ),
}
"""Content types of main parts that do not say which file they make."""
_ODF_ROOT = re.compile(
    rb"""manifest:file-entry\b(?=[^<>]{0,1000}manifest:full-path=["']/["'])"""
    rb"""[^<>]{0,1000}?manifest:media-type=["']([^"'<>]{1,200})["']"""
)


_IWORK = re.compile(rb"<(sl:document|ls:document|key:presentation)\b")
_IWORK_KINDS = {
    b"sl:document": "pages",
    b"ls:document": "numbers",
    b"key:presentation": "keynote",
}


def document_type(body: bytes, name: str = "", content_type: str = "") -> str:
    """The type by media_type(), with a look inside containers."""
    return media_type(content_type, body, name, _type_inside)


def _type_inside(body: bytes) -> str:
    if not body.startswith(olefile.MAGIC):
        return _type_of_zip(body) or type_in_zip(body, body, _END_BYTES, _MAX_NAMES)
    try:
        with olefile.OleFileIO(io.BytesIO(body)) as file:
            if file.root.clsid == _INSTALLER:
                return "application/x-msi"
            names = {entry.name for entry in file.root.kids}
    except Exception:  # noqa: BLE001 - IndexError, struct.error and more, of a damaged one
        names = {name for name in OLE_NAMES if f"{name}\0\0".encode("utf-16-le") in body}
    return type_of_ole(names)


def _type_of_zip(body: bytes) -> str:
    """The type by its members, "" if they prove none, or their list is damaged or too long."""
    end = body.rfind(b"PK\x05\x06", max(0, len(body) - _COMMENT_BYTES))
    if end < 0 or int.from_bytes(body[end + 12 : end + 16], "little") > _MAX_LIST:
        return ""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            if not is_listed_within(body, archive):
                return _type_of_members(archive)
        with zipfile.ZipFile(io.BytesIO(with_list(body))) as archive:
            return _type_of_members(archive) or ZIP
    except Exception:  # noqa: BLE001 - zipfile and its codecs raise what bytes make them raise
        return ""


def _type_of_members(archive: zipfile.ZipFile) -> str:
    names = {_plain(name): name for name in archive.namelist()[:_MAX_NAMES]}
    return (
        _by_mimetype(archive, names)
        or _by_relationships(archive, names)
        or _of_iwork(archive, names)
        or type_of_names(names)
    )


def _plain(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def _read(archive: zipfile.ZipFile, name: str | None) -> bytes:
    """The first bytes of a member; none if it is missing or encrypted."""
    if name is None or archive.getinfo(name).flag_bits & 1:
        return b""
    with archive.open(name) as file:
        return file.read(_MAX_BYTES)


def _by_mimetype(archive: zipfile.ZipFile, names: dict[str, str]) -> str:
    """EPUB 3.3 4.2.6.1 and ODF 1.3 part 2, 3.3, wherever the member is, compressed or not."""
    if "mimetype" in names:
        said = (
            _read(archive, names["mimetype"])[:200].decode("latin-1").strip("\xef\xbb\xbf \r\n\0")
        )
        if reader_of(said.lower()):
            return said.lower()
    if "meta-inf/manifest.xml" in names and "content.xml" in names:
        found = _ODF_ROOT.search(_read(archive, names["meta-inf/manifest.xml"]))
        said = found[1].decode("latin-1").lower() if found else ""
        return said if said.startswith(ODF) and reader_of(said) else ODF + "text"
    return ""


def _of_iwork(archive: zipfile.ZipFile, names: dict[str, str]) -> str:
    """The type of a document of Pages, Numbers or Keynote until 2009, by its root element."""
    listed = names.get("index.xml") or names.get("index.apxl")
    found = _IWORK.search(_read(archive, listed)[:1_000]) if listed else None
    return f"application/vnd.apple.{_IWORK_KINDS[found[1]]}" if found else ""


def _by_relationships(archive: zipfile.ZipFile, names: dict[str, str]) -> str:
    """OOXML and XPS: the part that the package's relationships name first, by its content type."""
    related = _elements(archive, names.get("_rels/.rels"))
    types = {
        _plain(one.get("PartName") or "." + one.get("Extension", "")): one.get(
            "ContentType", ""
        ).lower()
        for one in _elements(archive, names.get("[content_types].xml"))
    }
    mains = [
        _plain(normpath(_plain(one.get("Target", ""))))
        for one in related
        if one.get("Type", "").rpartition("/")[2] in ("officeDocument", "document")
        or one.get("Type", "").endswith("fixedrepresentation")
    ]
    known = (types.get(part) or types.get(splitext(part)[1], "") for part in mains)
    for kind in (*known, *types.values()):
        if mime := _of_content_type(kind):
            return mime
    return ""


def _of_content_type(kind: str) -> str:
    """The file type for the content type of a main part: docx for
    ``...wordprocessingml.document.main+xml``."""
    found = _MAIN.fullmatch(kind)
    bare = found[1] if found else kind
    if bare in _KNOWN:
        return _KNOWN[bare]
    if found is None or not kind.endswith(".main+xml"):
        return ""
    for mime in (bare, f"{bare}.12"):
        if mime.startswith((OOXML, "application/vnd.ms-")) and reader_of(mime):
            return mime
    return ""


def _elements(archive: zipfile.ZipFile, name: str | None) -> list[dict[str, str]]:
    """Attributes of the elements that name parts. No parser: a prefix or a damaged end costs
    nothing."""
    data = _read(archive, name)
    charset = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    return [
        {key: double or single for key, double, single in _ATTRIBUTE.findall(attributes)}
        for _, attributes in _ELEMENT.findall(data.decode(charset, "replace"))
    ]
