"""The media type of a response before its body is there: by Content-Type, or by its URL's name.

    announced_type("application/octet-stream", "http://h/a.docx")     # as docx has it
    is_document("text/html", "http://h/a.pdf")                        # False: a page

FORMATS lists the readable types and their modules in extraction/, which judge by the body
(extraction/formats.py).
"""

from __future__ import annotations

from functools import lru_cache

_HERE = "larmspider.extraction."
_APART = _HERE + "documents."
_OFFICE, _SHEETS = f"{_APART}office.office", f"{_APART}office.spreadsheet"
OOXML = "application/vnd.openxmlformats-officedocument."
ODF = "application/vnd.oasis.opendocument."
FLAT_ODF = ODF + "{kind}-flat-xml"
"""OpenDocument in one XML file; ``kind`` is text, spreadsheet, presentation or graphics."""

FORMATS: tuple[tuple[str, str, str], ...] = (
    # media type, extensions, module; modules in documents/ run in a separate process
    ("text/html", "html htm", _HERE + "pages.html"),
    ("application/xhtml+xml", "xhtml xht", _HERE + "pages.xhtml"),
    ("text/plain", "txt text log info", _HERE + "plain_text"),
    ("application/pdf", "pdf", _APART + "pdfs.pdf"),
    ("application/x-pdf", "", _APART + "pdfs.pdf"),
    (OOXML + "wordprocessingml.document", "docx", _OFFICE),
    (OOXML + "wordprocessingml.template", "dotx", _OFFICE),
    ("application/vnd.ms-word.document.macroenabled.12", "docm", _OFFICE),
    (OOXML + "presentationml.presentation", "pptx", _OFFICE),
    ("application/vnd.ms-word.template.macroenabled.12", "dotm", _OFFICE),
    (OOXML + "presentationml.slideshow", "ppsx", _OFFICE),
    (OOXML + "presentationml.template", "potx", _OFFICE),
    ("application/vnd.ms-powerpoint.slideshow.macroenabled.12", "ppsm", _OFFICE),
    ("application/vnd.ms-powerpoint.template.macroenabled.12", "potm", _OFFICE),
    (
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        "pptm",
        _OFFICE,
    ),
    ("application/vnd.ms-visio.drawing", "vsdx vsdm vstx vstm vssx vssm", _OFFICE),
    (ODF + "text", "odt", _OFFICE),
    (ODF + "text-template", "ott", _OFFICE),
    (ODF + "text-master", "odm", _OFFICE),
    (ODF + "spreadsheet-template", "ots", _OFFICE),
    (ODF + "presentation-template", "otp", _OFFICE),
    (ODF + "graphics-template", "otg", _OFFICE),
    (ODF + "spreadsheet", "ods", _OFFICE),
    (ODF + "presentation", "odp", _OFFICE),
    (ODF + "graphics", "odg", _OFFICE),
    (ODF + "base", "odb", _OFFICE),
    (ODF + "database", "", _OFFICE),
    (OOXML + "spreadsheetml.sheet", "xlsx", _SHEETS),
    (OOXML + "spreadsheetml.template", "xltx", _SHEETS),
    ("application/vnd.ms-excel.template.macroenabled.12", "xltm", _SHEETS),
    ("application/vnd.ms-excel", "xls", _SHEETS),
    ("application/vnd.ms-excel.sheet.macroenabled.12", "xlsm", _SHEETS),
    (
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
        "xlsb",
        _SHEETS,
    ),
    ("application/rtf", "rtf", _APART + "rtf"),
    ("text/rtf", "", _APART + "rtf"),
    ("application/epub+zip", "epub", _APART + "epub"),
    ("message/rfc822", "eml emlx mht mhtml", _APART + "mails.mail"),
    ("message/global", "", _APART + "mails.mail"),
    ("message/news", "", _APART + "mails.mail"),
    ("multipart/related", "", _APART + "mails.mail"),
    ("application/x-mimearchive", "", _APART + "mails.mail"),
    ("application/mbox", "mbox", _APART + "mails.mail"),
    ("application/vnd.ms-outlook", "msg", _APART + "mails.msg"),
    ("application/ms-tnef", "", _APART + "mails.tnef"),
    ("application/vnd.ms-tnef", "", _APART + "mails.tnef"),
    ("application/pkcs7-mime", "p7m", _APART + "mails.signed"),
    ("application/x-pkcs7-mime", "", _APART + "mails.signed"),
    ("text/markdown", "md markdown", _APART + "markdown"),
    ("text/x-markdown", "", _APART + "markdown"),
    ("text/csv", "csv", _APART + "delimited"),
    ("text/tab-separated-values", "tsv", _APART + "delimited"),
    ("application/json", "json jsonl ndjson geojson ipynb", _APART + "text"),
    ("application/x-ndjson", "", _APART + "text"),
    ("application/ndjson", "", _APART + "text"),
    ("application/jsonl", "", _APART + "text"),
    ("application/jsonlines", "", _APART + "text"),
    ("application/json-seq", "", _APART + "text"),
    ("application/x-json", "", _APART + "text"),
    ("text/json", "", _APART + "text"),
    ("text/x-json", "", _APART + "text"),
    ("text/calendar", "ics ical ifb", _APART + "content_lines"),
    ("application/ics", "", _APART + "content_lines"),
    ("text/x-vcalendar", "vcs", _APART + "content_lines"),
    ("text/vcard", "vcf vcard", _APART + "content_lines"),
    ("text/x-vcard", "", _APART + "content_lines"),
    ("text/directory", "", _APART + "content_lines"),
    ("application/xml", "xml", _APART + "xml"),
    ("text/xml", "", _APART + "xml"),
    ("application/rss+xml", "rss", _APART + "xml"),
    ("application/atom+xml", "atom", _APART + "xml"),
    ("image/svg+xml", "svg", _APART + "xml"),
    (FLAT_ODF.format(kind="text"), "fodt", _APART + "xml"),
    (FLAT_ODF.format(kind="spreadsheet"), "fods", _APART + "xml"),
    (FLAT_ODF.format(kind="presentation"), "fodp", _APART + "xml"),
    (FLAT_ODF.format(kind="graphics"), "fodg", _APART + "xml"),
    ("application/zip", "zip", _APART + "archives"),
    ("application/x-zip-compressed", "", _APART + "archives"),
    ("application/x-tar", "tar", _APART + "archives"),
    ("application/gzip", "gz tgz", _APART + "archives"),
    ("application/x-gzip", "", _APART + "archives"),
    ("application/x-bzip2", "bz2", _APART + "archives"),
    ("application/x-xz", "xz", _APART + "archives"),
    ("application/zstd", "zst", _APART + "archives"),
    ("application/x-lzma", "lzma", _APART + "archives"),
    # formats without a reader in the base install (docs/documents.md#second-reader)
    ("application/msword", "doc dot", _APART + "ole"),
    ("application/vnd.ms-powerpoint", "ppt pps", _APART + "ole"),
    ("application/x-ole-storage", "", _APART + "ole"),
    ("application/vnd.visio", "vsd", _APART + "ole"),
    ("application/vnd.ms-project", "mpp", _APART + "ole"),
    ("application/x-mspublisher", "pub", _APART + "ole"),
    ("application/vnd.ms-works", "wps", _APART + "unknown"),
    ("application/x-mswrite", "wri", _APART + "unknown"),
    ("application/vnd.lotus-1-2-3", "123 wks wk1 wk3 wk4", _APART + "unknown"),
    ("application/x-quattro-pro", "qpw wb1 wb2 wb3 wq1 wq2", _APART + "unknown"),
    ("application/x-hwp", "hwp", _APART + "unknown"),
    ("application/x-dbf", "dbf", _APART + "unknown"),
    ("application/x-msaccess", "mdb accdb", _APART + "unknown"),
    ("application/vnd.ms-outlook-pst", "pst ost", _APART + "unknown"),
    ("application/x-mobipocket-ebook", "mobi azw azw3", _APART + "unknown"),
    ("application/x-ms-reader", "lit", _APART + "unknown"),
    ("application/x-indesign", "indd", _APART + "unknown"),
    ("image/vnd.dwg", "dwg", _APART + "unknown"),
    ("application/vnd.wordperfect", "wpd", _APART + "unknown"),
    ("application/onenote", "one", _APART + "unknown"),
    ("application/vnd.ms-htmlhelp", "chm", _APART + "unknown"),
    ("application/vnd.apple.pages", "pages", _APART + "unknown"),
    ("application/vnd.apple.numbers", "numbers", _APART + "unknown"),
    ("application/vnd.apple.keynote", "key", _APART + "unknown"),
    ("application/vnd.ms-xpsdocument", "xps oxps", _APART + "unknown"),
    ("image/vnd.djvu", "djvu djv", _APART + "unknown"),
    ("application/x-lzip", "lz", _APART + "unknown"),
    ("application/x-lz4", "lz4", _APART + "unknown"),
    ("application/x-compress", "z", _APART + "unknown"),
    ("application/x-cpio", "cpio", _APART + "unknown"),
    ("application/vnd.ms-cab-compressed", "cab", _APART + "unknown"),
    ("application/x-arj", "arj", _APART + "unknown"),
    ("application/x-7z-compressed", "7z", _APART + "sevenzip"),
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
    ("audio/x-mpegurl", "m3u m3u8", _HERE + "plain_text"),
    ("audio/mpegurl", "", _HERE + "plain_text"),
    ("application/vnd.apple.mpegurl", "", _HERE + "plain_text"),
    ("audio/x-scpls", "pls", _HERE + "plain_text"),
    ("application/x-yaml", "", _HERE + "plain_text"),
    ("text/*", "", _HERE + "plain_text"),
)
_NO_PROSE = frozenset(
    {"text/css", "text/javascript", "text/x-javascript", "text/ecmascript", "text/jscript"}
    | {"text/x-component", "text/cache-manifest", "text/event-stream", "text/vnd.wap.wml"}
    | {"text/xsl", "text/sgml", "text/xml-external-parsed-entity", "text/x-server-parsed-html"}
)
"""Texts for browsers alone, and markup: not read."""

WRAPPED = frozenset(
    {"application/vnd.ms-xpsdocument"}
    | {f"application/vnd.apple.{name}" for name in ("pages", "numbers", "keynote")}
)
"""Types of zip files that no reader of ours knows."""
_CLOSED_FAMILIES = ("image/", "audio/", "video/", "font/")
_CLOSED = _NO_PROSE | frozenset(
    {f"application/{name}javascript" for name in ("", "x-")}
    | {f"application/{name}ecmascript" for name in ("", "x-")}
    | {"application/java-archive", "application/x-java-archive", "application/java-vm"}
    | {"application/vnd.android.package-archive", "application/x-xpinstall"}
    | {"application/x-ios-app", "application/msix", "application/appx", "application/vnd.ms-appx"}
    | {"application/x-chrome-extension", "application/wasm", "application/x-shockwave-flash"}
    | {"application/vnd.ms-fontobject", "application/font-woff", "application/x-font-ttf"}
    | {"application/x-font-woff", "application/x-font-otf", "application/font-sfnt"}
    | {"application/ogg", "application/mp4", "application/x-matroska"}
)
"""Pictures, sound, films, fonts, programs, and texts for browsers alone: no documents."""
TAGS = _APART + "tags"
TAGGED = frozenset(
    {f"image/{name}" for name in ("jpeg", "jpg", "pjpeg", "png", "gif", "tiff", "webp")}
    | {f"image/{name}" for name in ("heic", "heif", "avif", "heic-sequence", "heif-sequence")}
    | {f"audio/{name}" for name in ("mpeg", "mp3", "mp4", "x-m4a", "m4a", "ogg", "vorbis", "opus")}
    | {f"audio/{name}" for name in ("flac", "x-flac", "wav", "x-wav", "wave", "vnd.wave", "aiff")}
    | {"audio/x-aiff", "audio/x-ms-wma", "video/mp4", "video/x-m4v", "video/quicktime"}
    | {"video/ogg", "video/x-ms-wmv", "video/x-ms-asf", "application/ogg", "application/mp4"}
)
"""Pictures, sound and films whose tags are read (documents/tags.py). They stay closed."""
_OFTEN_SOURCE = frozenset({"video/mp2t", "video/vnd.dlna.mpeg-tts"})
"""Types under which servers send source code in TypeScript (.ts)."""

PAGE_TYPES = ("text/html", "application/xhtml+xml")

_READERS = {mime: reader for mime, _, reader in FORMATS}
_BY_EXTENSION = {name: mime for mime, names, _ in FORMATS for name in names.split()}

DOWNLOADS = frozenset(
    f"{family}/{name}"
    for family in ("application", "binary")
    for name in ("octet-stream", "force-download", "x-download", "download")
)
"""Types that only tell a browser to save the body."""
NO_TYPES = DOWNLOADS | {"unknown/unknown", "application/unknown", "*/*", "content/unknown"}


def reader_of(mime: str) -> str:
    """The module of extraction/ that reads documents of a type; "" for none."""
    reader = _READERS.get(mime, "")
    if reader or mime in _CLOSED:
        return reader
    if mime.startswith("text/"):
        return _READERS["text/*"]
    if mime.endswith(("+xml", "+json")) and not mime.startswith(_CLOSED_FAMILIES):  # RFC 6839
        return _READERS["application/xml" if mime.endswith("+xml") else "application/json"]
    return ""


def module_of(mime: str) -> str:
    """The name of that module alone: ``office``."""
    return reader_of(mime).rpartition(".")[2]


def is_closed(mime: str) -> bool:
    """Whether a type is believed though nothing reads it: a picture, a program."""
    if mime in _READERS or mime in _OFTEN_SOURCE:
        return False
    return mime in _CLOSED or mime.startswith(_CLOSED_FAMILIES)


def is_read_apart(mime: str) -> bool:
    """Whether documents of this type are never read in the crawl's process."""
    return mime in TAGGED or reader_of(mime).startswith(_APART)


def announced_type(content_type: str, name: str) -> str:
    """The media type that the head of a response announces: by Content-Type or, if that is missing
    or unknown, by the name."""
    mime = content_type.partition(";")[0].strip().lower()
    if mime in NO_TYPES or not (reader_of(mime) or is_closed(mime)):
        return type_by_name(name) or (mime if mime not in NO_TYPES else "")
    return mime


def is_document(content_type: str, name: str) -> bool:
    """Whether the head of a response announces a document and no page."""
    return reader_of(announced_type(content_type, name)).startswith(_APART)


@lru_cache(maxsize=128)  # called for the header, for the body and by the spider
def type_by_name(name: str) -> str:
    """The media type that the extension of a URL or file name stands for; "" for none."""
    _, mark, rest = name.partition("://")
    if mark:  # urlsplit() takes ten times as long
        name = rest.partition("#")[0].partition("?")[0].partition("/")[2]
    return _BY_EXTENSION.get(name.rpartition("/")[2].rpartition(".")[2].lower(), "")
