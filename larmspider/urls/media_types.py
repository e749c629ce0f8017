"""Which media type a response is before its body is there: by Content-Type, or by its URL's name.

    announced_type("application/octet-stream", "http://h/a.docx")     # as docx has it
    is_document("text/html", "http://h/a.pdf")                        # False: a page

FORMATS has what is read, and by which module of extraction/, which judges by the body
(extraction/formats.py).
"""

from __future__ import annotations

from urllib.parse import urlsplit

_HERE = "larmspider.extraction."
_APART = _HERE + "documents."
OOXML = "application/vnd.openxmlformats-officedocument."
ODF = "application/vnd.oasis.opendocument."

FORMATS: tuple[tuple[str, str, str], ...] = (
    # media type, extensions, module; what lies in documents/ is read in a process of its own
    ("text/html", "html htm", _HERE + "html"),
    ("application/xhtml+xml", "xhtml xht", _HERE + "html"),
    ("text/plain", "txt text log info", _HERE + "plain_text"),
    ("application/pdf", "pdf", _APART + "pdf"),
    ("application/x-pdf", "", _APART + "pdf"),
    (OOXML + "wordprocessingml.document", "docx", _APART + "office"),
    (OOXML + "wordprocessingml.template", "dotx", _APART + "office"),
    ("application/vnd.ms-word.document.macroenabled.12", "docm", _APART + "office"),
    (OOXML + "presentationml.presentation", "pptx", _APART + "office"),
    (OOXML + "presentationml.slideshow", "ppsx", _APART + "office"),
    ("application/vnd.ms-powerpoint.presentation.macroenabled.12", "pptm", _APART + "office"),
    (ODF + "text", "odt", _APART + "office"),
    (ODF + "text-template", "ott", _APART + "office"),
    (ODF + "spreadsheet", "ods", _APART + "office"),
    (ODF + "presentation", "odp", _APART + "office"),
    (ODF + "graphics", "odg", _APART + "office"),
    (OOXML + "spreadsheetml.sheet", "xlsx", _APART + "spreadsheet"),
    ("application/vnd.ms-excel", "xls", _APART + "spreadsheet"),
    ("application/vnd.ms-excel.sheet.macroenabled.12", "xlsm", _APART + "spreadsheet"),
    ("application/vnd.ms-excel.sheet.binary.macroenabled.12", "xlsb", _APART + "spreadsheet"),
    ("application/rtf", "rtf", _APART + "rtf"),
    ("text/rtf", "", _APART + "rtf"),
    ("application/epub+zip", "epub", _APART + "epub"),
    ("message/rfc822", "eml", _APART + "mail"),
    ("application/mbox", "mbox", _APART + "mail"),
    ("application/vnd.ms-outlook", "msg", _APART + "msg"),
    ("text/markdown", "md markdown", _APART + "markdown"),
    ("text/x-markdown", "", _APART + "markdown"),
    ("text/csv", "csv", _APART + "delimited"),
    ("text/tab-separated-values", "tsv", _APART + "delimited"),
    ("application/json", "json", _APART + "text"),
    ("application/xml", "xml", _APART + "xml"),
    ("text/xml", "", _APART + "xml"),
    ("application/rss+xml", "rss", _APART + "xml"),
    ("application/atom+xml", "atom", _APART + "xml"),
    ("application/zip", "zip", _APART + "archives"),
    ("application/x-zip-compressed", "", _APART + "archives"),
    ("application/x-tar", "tar", _APART + "archives"),
    ("application/gzip", "gz tgz", _APART + "archives"),
    ("application/x-gzip", "", _APART + "archives"),
    ("application/x-bzip2", "bz2", _APART + "archives"),
    ("application/x-xz", "xz", _APART + "archives"),
    # what the base install cannot read says so (docs/documents.md#second-reader)
    ("application/msword", "doc dot", _APART + "ole"),
    ("application/vnd.ms-powerpoint", "ppt pps", _APART + "ole"),
    ("application/x-ole-storage", "", _APART + "ole"),
    ("application/vnd.visio", "vsd", _APART + "ole"),
    ("application/vnd.ms-visio.drawing", "vsdx", _APART + "unknown"),
    ("application/vnd.ms-project", "mpp", _APART + "ole"),
    ("application/x-mspublisher", "pub", _APART + "ole"),
    ("application/vnd.ms-works", "wps", _APART + "unknown"),
    ("application/vnd.wordperfect", "wpd", _APART + "unknown"),
    ("application/onenote", "one", _APART + "unknown"),
    ("application/vnd.ms-htmlhelp", "chm", _APART + "unknown"),
    ("application/vnd.apple.pages", "pages", _APART + "unknown"),
    ("application/vnd.apple.numbers", "numbers", _APART + "unknown"),
    ("application/vnd.apple.keynote", "key", _APART + "unknown"),
    ("application/x-7z-compressed", "7z", _APART + "unknown"),
    ("application/vnd.rar", "rar", _APART + "unknown"),
    ("application/x-rar-compressed", "", _APART + "unknown"),
    # source code and the like: what mime.types calls an application, and any other text
    ("application/x-sh", "", _HERE + "plain_text"),
    ("application/x-shellscript", "", _HERE + "plain_text"),
    ("application/x-csh", "", _HERE + "plain_text"),
    ("application/x-perl", "", _HERE + "plain_text"),
    ("application/x-python", "", _HERE + "plain_text"),
    ("application/x-ruby", "", _HERE + "plain_text"),
    ("application/x-tcl", "", _HERE + "plain_text"),
    ("application/x-tex", "", _HERE + "plain_text"),
    ("application/x-latex", "", _HERE + "plain_text"),
    ("application/x-texinfo", "", _HERE + "plain_text"),
    ("application/x-troff-man", "", _HERE + "plain_text"),
    ("application/sql", "", _HERE + "plain_text"),
    ("application/toml", "", _HERE + "plain_text"),
    ("application/yaml", "", _HERE + "plain_text"),
    ("application/x-yaml", "", _HERE + "plain_text"),
    ("text/*", "", _HERE + "plain_text"),
)
_NO_PROSE = frozenset(
    {"text/css", "text/javascript", "text/x-javascript", "text/ecmascript", "text/jscript"}
    | {"text/x-component", "text/cache-manifest", "text/event-stream", "text/vnd.wap.wml"}
    | {"text/xsl", "text/sgml", "text/xml-external-parsed-entity", "text/x-server-parsed-html"}
)
"""Texts for browsers alone, and markup: not read."""

_READERS = {mime: reader for mime, _, reader in FORMATS}
_BY_EXTENSION = {name: mime for mime, names, _ in FORMATS for name in names.split()}

DOWNLOADS = frozenset(
    f"{family}/{name}"
    for family in ("application", "binary")
    for name in ("octet-stream", "force-download", "x-download", "download")
)
"""They say that a browser is to save the body, and nothing about it."""
NO_TYPES = DOWNLOADS | {"unknown/unknown", "application/unknown", "*/*", "content/unknown"}


def reader_of(mime: str) -> str:
    """The module of extraction/ that reads documents of a type; "" for none."""
    reader = _READERS.get(mime, "")
    if not reader and mime.startswith("text/") and mime not in _NO_PROSE:
        return _READERS["text/*"]
    return reader


def is_read_apart(mime: str) -> bool:
    """Whether a document of this type is never read in the crawl's process."""
    return reader_of(mime).startswith(_APART)


def announced_type(content_type: str, url: str) -> str:
    """The media type that the head of a response announces: by Content-Type or, where that says
    nothing, by the name."""
    mime = content_type.partition(";")[0].strip().lower()
    return mime if mime and mime not in NO_TYPES else type_by_name(url)


def is_document(content_type: str, url: str) -> bool:
    """Whether the head of a response announces a document and no page."""
    return is_read_apart(announced_type(content_type, url))


def type_by_name(name: str) -> str:
    """The media type that the extension of a URL or file name stands for; "" for none."""
    path = urlsplit(name).path if "://" in name else name
    return _BY_EXTENSION.get(path.rpartition("/")[2].rpartition(".")[2].lower(), "")
