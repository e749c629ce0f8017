"""Which charset a body is in: ``<meta charset=iso-8859-2>`` is found before anything is parsed.

The order is the WHATWG HTML Standard's (13.2.3.2, "determining the character encoding"): byte
order mark, HTTP header, then ``<meta>`` and the XML declaration in the first bytes. What declares
nothing is UTF-8 where it is valid UTF-8, else guessed::

    declared_charset(b'<meta charset="latin1">', None)  # windows-1252: what browsers mean by it
    decode(b"caf\\xc3\\xa9", "text/html")                # ("caf\u00e9", "utf-8")

Names are those of the WHATWG Encoding Standard in lower case (``utf-16le``, ``windows-1252``).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

import webencodings
from w3lib.html import strip_html5_whitespace

_BROWSERS_BYTES, PRESCAN_BYTES = 1_024, 16_384
"""How far to look for a declaration. Browsers scan 1,024 bytes and start anew when the parser meets
a later one; a second, longer scan also finds a declaration behind a long comment."""
SAMPLE_BYTES = 20_480
"""Size of the sample for a guess; detectors read 5 to 11 MB a second."""
_BEFORE = 1_024  # bytes of the sample before the first that is not UTF-8
FALLBACK = "windows-1252"
"""Without a guess: the default of browsers in the West, in which every byte has a meaning."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)
_UTF_8_QUERIES = frozenset(("utf-8", "utf-16le", "utf-16be", "replacement"))
"""Encoding Standard 4.3, "get an output encoding"."""
_HTTP_CHARSET = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;]+))", re.IGNORECASE)
_TAG = re.compile(
    rb"<(?:(!--)|(meta)(?=[\t\n\f\r /])|(/?[a-z][^\t\n\f\r >]*)|[!/?])", re.IGNORECASE
)
# 13.2.3.2, "get an attribute". Groups: name, values; an empty group marks a value cut by the end.
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r />=]*)"
    rb"(?:[\t\n\f\r ]*=[\t\n\f\r ]*"
    rb"(?:\"([^\"]*)(?:\"|(\Z))|'([^']*)(?:'|(\Z))|([^\t\n\f\r >]*)))?"
)
_SPACE_OR_SLASH = re.compile(rb"[\t\n\f\r /]*")
_CONTENT_CHARSET = re.compile(
    rb"charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|(?![\"'])([^\t\n\f\r ;]+)|(.?))",
    re.IGNORECASE | re.DOTALL,
)
_XML_ENCODING = re.compile(
    rb"<\?xml[^>]*?encoding[\0- ]*=[\0- ]*(?:\"([^\">\0- ]*)\"|'([^'>\0- ]*)')[^>]*>"
)


def declared_charset(body: bytes, content_type: str | None) -> str | None:
    """The charset that ``body`` or its Content-Type header declares, None where neither does.

    A label that no browser knows counts as no declaration.
    """
    for bom, bom_charset in _BOMS:
        if body.startswith(bom):
            return bom_charset
    if content_type and (found := _HTTP_CHARSET.search(content_type)):
        charset = _lookup(found[1] or found[2] or found[3] or "")
        if charset:
            return charset
    for size in (_BROWSERS_BYTES, PRESCAN_BYTES):  # a tag that the end cuts off has no charset
        head = body[:size]
        last = head.lower().rfind(b"charset")
        if last >= 0 and (charset := _prescan(head, last)):
            return charset
    return _xml_declaration(head)


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """``body`` as text, without byte order mark, and the charset used; bad bytes become U+FFFD."""
    charset = declared_charset(body, content_type)
    if charset is None:
        try:
            return body.decode(), "utf-8"
        except UnicodeDecodeError as error:
            charset = guess(body, error)
    return _decode_as(body, charset), charset


def to_utf8(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """Like ``decode``, but UTF-8 bytes for a parser that reads those.

    A body in UTF-8 is returned as it is, bad bytes included: selectolax shows them as U+FFFD, and
    to decode and encode it again costs 0.17 ms for 95 KB, a tenth of the extraction.
    """
    charset = declared_charset(body, content_type)
    if charset == "utf-8":
        return body.removeprefix(codecs.BOM_UTF8), charset
    if charset is None:
        try:
            body.decode()
        except UnicodeDecodeError as error:
            charset = guess(body, error)
        else:
            return body, "utf-8"
    return _decode_as(body, charset).encode("utf-8", "replace"), charset


def query_encoder(charset: str | None) -> Callable[[str], bytes] | None:
    """What turns the query of a link on a page in ``charset`` into bytes (WHATWG URL 4.4, "query
    state"); None where that is UTF-8, as for pages in UTF-16 too. A character that the charset
    lacks becomes its escaped number, as browsers send it: ``%26%239731%3B``."""
    if charset is None or charset in _UTF_8_QUERIES:
        return None
    encode = webencodings.lookup(charset).codec_info.encode
    return lambda query: encode(query, _BY_NUMBER)[0]


def _by_number(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(char)}%3B" for char in lacking), error.end


_BY_NUMBER = "larmspider.by-number"
codecs.register_error(_BY_NUMBER, _by_number)


def _decode_as(body: bytes, charset: str) -> str:
    encoding = webencodings.lookup(charset)
    for bom, name in _BOMS:
        if name == charset:
            body = body.removeprefix(bom)
    text: str = encoding.codec_info.decode(body, "replace")[0]
    return text


def _lookup(label: str) -> str | None:
    encoding = webencodings.lookup(strip_html5_whitespace(label))
    return None if encoding is None else encoding.name


def _lookup_in_markup(label: bytes) -> str | None:
    """The name for a label in markup, which cannot be in UTF-16, for it was readable."""
    name = _lookup(label.decode("latin-1"))
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _prescan(head: bytes, last: int) -> str | None:
    """13.2.3.2, "prescan a byte stream to determine its encoding"; ``last`` ends the search."""
    position = 0
    while (tag := _TAG.search(head, position)) and tag.start() <= last:
        comment, meta, other = tag.groups()
        position = tag.end()
        if comment:
            end = head.find(b"-->", tag.start() + 2)
            position = end + 3
        elif meta or other:
            attributes, end = _attributes(head, position)
            position = end
            if meta and end >= 0 and (name := _charset_of_meta(attributes)):
                return name
        else:
            end = head.find(b">", position)
            position = end + 1
        if end < 0:
            return None
    return None


def _attributes(head: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """The attributes of the tag whose name ends at ``position``, the first of each name, and their
    end, -1 if the data ends first."""
    attributes: dict[bytes, bytes] = {}
    while found := _ATTRIBUTE.match(head, position):
        name, double, double_cut, single, single_cut, bare = found.groups()
        position = found.end()
        if double_cut is not None or single_cut is not None or position == len(head):
            return attributes, -1
        attributes.setdefault(name.lower(), double or single or bare or b"")
    space = _SPACE_OR_SLASH.match(head, position)
    position = space.end() if space else position
    return attributes, position if position < len(head) else -1


def _charset_of_meta(attributes: dict[bytes, bytes]) -> str | None:
    label = attributes.get(b"charset")
    if label is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
        label = _charset_in_content(attributes.get(b"content", b""))
    return None if label is None else _lookup_in_markup(label)


def _charset_in_content(content: bytes) -> bytes | None:
    """HTML 2.5.5, "extracting a character encoding from a meta element"."""
    found = _CONTENT_CHARSET.search(content)
    return found and (found[1] or found[2] or found[3])


def _xml_declaration(head: bytes) -> str | None:
    """Encoding Standard's hook for XML: ``<?xml encoding="koi8-r"?>``, in UTF-16 too."""
    if head.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if head.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    found = _XML_ENCODING.match(head)
    return _lookup_in_markup(found[1] or found[2] or b"") if found else None


def _detector() -> Callable[[bytes], str | None]:
    """chardetng, the detector of Firefox, if it is installed (the extra ``charset``), or
    charset-normalizer, which is right less often."""
    try:
        from chardetng_py import detect
    except ImportError:
        return _by_normalizer
    return detect  # type: ignore[no-any-return]


def _by_normalizer(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes  # 40 ms to import, and few pages need it

    best = from_bytes(sample).best()
    return None if best is None else best.encoding.replace("_", "-")


_detect = _detector()


def guess(body: bytes, error: UnicodeDecodeError) -> str:
    """The charset of ``body``, by a sample around ``error``, the first byte that is not UTF-8.

    A body that is UTF-8 but cut off in the middle of its last character is UTF-8.
    """
    if error.reason == "unexpected end of data":
        return "utf-8"
    start = max(0, error.start - _BEFORE)
    encoding = webencodings.lookup(_detect(body[start : start + SAMPLE_BYTES]) or FALLBACK)
    return FALLBACK if encoding is None else encoding.name
