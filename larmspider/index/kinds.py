"""What kind of document a media type is, for people: ``application/msword`` is a document.

There are hundreds of media types and people look for a handful of kinds, so results are counted and
filtered by kind::

    kind_of("application/vnd.oasis.opendocument.spreadsheet")   # "spreadsheet"
    kind_of("application/x-unheard-of")                         # "other"
"""

from __future__ import annotations

from types import MappingProxyType

OTHER = "other"

_MEMBERS = {
    "html": ("text/html", "application/xhtml+xml"),
    "text": ("text/plain", "text/markdown", "text/x-rst"),
    "pdf": ("application/pdf", "application/x-pdf"),
    "document": (
        "application/msword",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.oasis.opendocument.text",
        "application/rtf",
        "text/rtf",
        "application/epub+zip",
    ),
    "spreadsheet": (
        "application/vnd.ms-excel",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.oasis.opendocument.spreadsheet",
        "text/csv",
        "text/tab-separated-values",
    ),
    "presentation": (
        "application/vnd.ms-powerpoint",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.oasis.opendocument.presentation",
    ),
    "data": ("application/json", "application/xml", "text/xml", "application/yaml"),
    "archive": ("application/zip", "application/gzip", "application/x-tar"),
}
_FAMILIES = ("image", "audio", "video")

_KINDS = MappingProxyType({mime: kind for kind, mimes in _MEMBERS.items() for mime in mimes})

KINDS = (*_MEMBERS, *_FAMILIES, OTHER)
"""All kinds there are."""


def kind_of(mime: str) -> str:
    """The kind of a media type in lower case and without parameters; `OTHER` for an unknown one."""
    if kind := _KINDS.get(mime):
        return kind
    family, _, subtype = mime.partition("/")
    if family in _FAMILIES:
        return family
    if subtype.endswith(("+xml", "+json")):
        return "data"
    return OTHER
