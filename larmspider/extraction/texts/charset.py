"""Which charset a body is in: ``<meta charset=iso-8859-2>`` is found before anything is parsed.

The order is the WHATWG HTML Standard's (13.2.3.2, "determining the character encoding"): byte
order mark, HTTP header, then ``<meta>`` and the XML declaration in the first bytes. A body without
a declaration is UTF-8 if it is valid UTF-8; otherwise the charset is guessed. A guess also replaces
a declaration that the body's own bytes disprove: UTF-8 called Latin-1, Latin-1 called UTF-8::

    declared_charset(b'<meta charset="latin1">', None)  # windows-1252: what browsers mean by it
    decode(b"caf\\xc3\\xa9", "text/html")                # ("caf\u00e9", "utf-8")

Names are WHATWG Encoding Standard names in lower case (``utf-16le``, ``windows-1252``),
``cp850`` and ``cp437`` of DOS (old_charsets.py), and ``utf-32le`` and ``utf-32be``.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from unicodedata import category

import webencodings
from w3lib.html import strip_html5_whitespace
from webencodings.labels import LABELS

from larmspider.extraction.texts import old_charsets

_BROWSERS_BYTES, PRESCAN_BYTES = 1_024, 16_384
"""How far to look for a declaration. Browsers scan 1,024 bytes and restart when the parser meets a
later declaration; a second, longer scan also finds a declaration after a long comment."""
SAMPLE_BYTES = 20_480
"""Size of the sample for a guess; detectors read 5 to 11 MB a second."""
_BEFORE = 1_024  # bytes of the sample before the first that is not UTF-8
FALLBACK = "windows-1252"
"""The charset without a guess: browsers in the West use it, and every byte has a meaning in it."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32le"),  # no browser knows these two
    (codecs.BOM_UTF32_BE, "utf-32be"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)
_WIDE_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_WIDE_BYTES = 16  # least bytes of UTF-16 whose characters are all ASCII
_SCRIPT_BYTES = 1_024  # of UTF-16 in other scripts
_PRINTED = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_EAST_ASIAN = re.compile("[\u3000-\u9fff\uac00-\ud7a3\uff00-\uffef]")
_ASIAN = 0x30
_FEW_SCRIPTS = 0.9  # of the characters
_STRETCHES, _STRETCH_BYTES = 4, 512  # parts of a body called UTF-8 that are decoded
_LONGEST_CHARACTER = 4  # bytes in UTF-8
_CUT_OFF = "unexpected end of data"
_LEAST_SEQUENCES = {"utf-16le": 0, "utf-16be": 0} | dict.fromkeys(
    ("gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr"), 4
)
"""Characters in UTF-8 that disprove a declaration, else 1. Words of a single-byte charset hardly
ever look like UTF-8; of the words of two characters in GBK one in 50 does."""
_WIDE = frozenset(("utf-16le", "utf-16be"))
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
"""Bytes that no text in UTF-8 has."""
_IN_WORD = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z\x80-\xff]")
_NOT_FIRST = bytes(range(0xC2)) + bytes(range(0xF5, 0x100))
_JIS = re.compile(rb"\x1b\$[@B]")
"""Japanese begins in ISO-2022-JP, whose bytes are all ASCII; browsers look for it too."""
_NO_CHARACTER = re.compile("[\x80-\x84\x86-\x9f]")
"""Control characters that no page has: they come from reading bytes in the wrong single-byte
charset."""
_PRIVATE = re.compile("[\ue000-\uf8ff]")
"""Characters that codecs of two bytes return for bytes without a character."""
_FOREIGN_SAMPLE = 4_096  # bytes, in 0.05 ms
_FOREIGN_BYTES = 12  # least bytes of different foreign words
_ASCII_BYTES = bytes(range(128))
_CYRILLIC = frozenset(("koi8-r", "koi8-u", "windows-1251", "x-mac-cyrillic"))
_CYRILLIC_WORD = re.compile("[\u0400-\u04ff]{3,}")
_WESTERN = frozenset(("windows-1252", "iso-8859-15", "iso-8859-2", "windows-1250", "macintosh"))
_FOREIGN_WORD = re.compile(rb"[\xa1-\xff]{4,}")
"""Bytes of a word without a letter from A to Z, which no Western text has."""
_SIBLINGS = {
    "iso-8859-2": "windows-1250",
    "iso-8859-4": "windows-1257",
    "iso-8859-5": "windows-1251",
    "iso-8859-6": "windows-1256",
    "iso-8859-7": "windows-1253",
    "iso-8859-8": "windows-1255",
    "iso-8859-8-i": "windows-1255",
    "iso-8859-13": "windows-1257",
    "iso-8859-15": "windows-1252",
    "iso-8859-16": "windows-1250",
}
_UTF_8_QUERIES = frozenset(("utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be", "replacement"))
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
    """The charset that ``body`` or its Content-Type header declares, None if neither does.

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
    charset = charset_of(body, content_type)
    return _decode_as(body, charset), charset


def to_utf8(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """Like ``decode``, but UTF-8 bytes for a parser that reads UTF-8.

    A body in UTF-8 is returned as it is, bad bytes included: selectolax shows them as U+FFFD, and
    to decode and encode it again costs 0.17 ms for 95 KB, a tenth of the extraction.
    """
    charset = charset_of(body, content_type)
    if charset == "utf-8":
        return body.removeprefix(codecs.BOM_UTF8), charset
    return _decode_as(body, charset).encode("utf-8", "replace"), charset


def charset_of(body: bytes, content_type: str | None) -> str:
    """The declared charset, unless the bytes prove another one; 0.01 ms for a page in UTF-8."""
    charset = declared_charset(body, content_type)
    if body.startswith(_WIDE_BOMS) and charset is not None:
        return charset
    if (wide := wide_without_mark(body)) is not None:
        return wide
    if charset == "utf-8":
        return charset if _seems_utf_8(body) else _instead_of_utf_8(body)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        if charset is None:
            return guess(body, error)
        is_cut = error.reason == _CUT_OFF and error.start > len(body) - _LONGEST_CHARACTER
        if not is_cut:
            return _instead_of(charset, body, error)
    if charset in _WIDE and _CONTROL.search(body, 0, PRESCAN_BYTES):
        return charset  # in Cyrillic and Greek text each byte is ASCII
    if charset is None and _JIS.search(body, 0, PRESCAN_BYTES):
        return "iso-2022-jp"
    least = _LEAST_SEQUENCES.get(charset or "", 1)
    return "utf-8" if charset is None or _sequences(body) >= least else charset


def wide_without_mark(body: bytes) -> str | None:
    """UTF-16 without a byte order mark, by the zeros of its first, ASCII characters; or by those
    zeros that its spaces and line ends have, if nearly all characters are from a few scripts."""
    head = body[: _SCRIPT_BYTES & ~1]
    if b"\0" not in head or len(body) < _WIDE_BYTES:
        return None
    even, odd = body[:_WIDE_BYTES:2], body[1:_WIDE_BYTES:2]
    if not odd.strip(b"\0") and b"\0" not in even:
        return "utf-16le"
    if not even.strip(b"\0") and b"\0" not in odd:
        return "utf-16be"
    if len(head) < 2 * _WIDE_BYTES or len(head.translate(None, _PRINTED)) * 5 < len(head):
        return None  # too short, or ASCII with a few zeros
    zeros = max(head[::2].count(0), head[1::2].count(0))
    if zeros * 100 < len(head) or (not head.isascii() and _seems_utf_8(head)):
        return None
    shares = {_share_of_scripts(head.decode(one, "replace")): one for one in sorted(_WIDE)}
    best = max(shares)
    return shares[best] if best >= _FEW_SCRIPTS else None


def _share_of_scripts(text: str) -> float:
    """How many characters are of the three commonest blocks of Unicode; 0.0 if one is a control
    character, private or unknown."""
    blocks = Counter[int]()
    text = text.rstrip("\ufffd")  # half of a character
    for char in text:
        if not char.isprintable() and not char.isspace() and category(char) != "Cf":
            return 0.0
        blocks[_ASIAN if _EAST_ASIAN.match(char) else ord(char) >> 8] += 1
    return sum(number for _, number in blocks.most_common(3)) / max(1, len(text))


def _seems_utf_8(body: bytes) -> bool:
    """Whether the first stretches that are not ASCII are UTF-8. To decode 95 KB of Russian takes
    0.4 ms."""
    if body.isascii():
        return True
    view, at = memoryview(body), len(codecs.BOM_UTF8) * body.startswith(codecs.BOM_UTF8)
    for _ in range(_STRETCHES):
        try:
            codecs.ascii_decode(view[at:])
        except UnicodeDecodeError as error:
            at += error.start
        else:
            break
        try:
            at += codecs.utf_8_decode(view[at : at + _STRETCH_BYTES])[1]  # drops a cut character
        except UnicodeDecodeError:
            return False
    return True


def _instead_of_utf_8(body: bytes) -> str:
    """The charset of a body that is called UTF-8 and has invalid bytes. It is UTF-8 unless most of
    its non-ASCII characters are invalid, and some of these are inside of words."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        text = body.decode(errors="replace")
        bad = text.count("\ufffd")
        if 2 * bad > _others(text) and _IN_WORD.search(body, max(0, error.start - 1)):
            return guess(body, error)
    return "utf-8"


def _instead_of(charset: str, body: bytes, error: UnicodeDecodeError) -> str:
    """The charset of a body that is not UTF-8 and declares ``charset``. A guess replaces
    ``charset`` if 1 in 20 characters is invalid in it, or if the body is in the Windows code page
    for the same letters. For charsets with two bytes a character the limit is 1 in 5, or 1 in 20 if
    the guessed charset can read the whole body."""
    start = max(0, error.start - _BEFORE)
    sample = body[start : start + SAMPLE_BYTES]
    text = _decode_as(sample, charset)
    bad = text.count("\ufffd") + len(_NO_CHARACTER.findall(text))
    if charset in _LEAST_SEQUENCES:
        bad += len(_PRIVATE.findall(text))
    elif (charset in _CYRILLIC and _is_inverted(text)) or (
        charset in _WESTERN and _is_foreign(sample[:_FOREIGN_SAMPLE])
    ):
        return guess(body, error)
    if not bad:
        return charset
    sibling = _SIBLINGS.get(charset)
    if sibling is not None and _letters(_decode_as(sample, sibling)) > _letters(text):
        return sibling
    if 20 * bad <= _others(text):
        return charset
    guessed = guess(body, error)
    if charset not in _LEAST_SEQUENCES or 5 * bad > _others(text):
        return guessed
    other = _decode_as(sample, guessed)[:-_LONGEST_CHARACTER]
    is_part = "\ufffd" in other or _PRIVATE.search(other)
    return charset if is_part or guessed not in _LEAST_SEQUENCES else guessed


def _is_inverted(text: str) -> bool:
    """Whether most words have small letters where capitals belong: KOI8-R has them where
    Windows-1251 has the small letters, and the other way round."""
    words = _CYRILLIC_WORD.findall(text)
    inverted = [word for word in words if word[0].islower() and word[1:].isupper()]
    usual = [word for word in words if word[1:].islower()]
    return len(inverted) > max(1, len(usual))


def _is_foreign(sample: bytes) -> bool:
    """Whether most characters beyond ASCII are in words of another script. Lines of one sign are no
    words."""
    words = [word for word in _FOREIGN_WORD.findall(sample) if len({*word}) > 2]
    others = len(sample.translate(None, _ASCII_BYTES))
    return sum(map(len, {*words})) >= _FOREIGN_BYTES and 2 * sum(map(len, words)) > others


def _sequences(body: bytes) -> int:
    """Characters of a body in UTF-8 that are not ASCII."""
    return len(body.translate(None, _NOT_FIRST))


def _others(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def query_encoder(charset: str | None) -> Callable[[str], bytes] | None:
    """The encoder of queries in links on a page in ``charset`` (WHATWG URL 4.4, "query state").
    None for UTF-8, which pages in UTF-16 also use. A character that the charset lacks becomes its
    escaped number, as browsers send it: ``%26%239731%3B``."""
    if charset is None or charset in _UTF_8_QUERIES:
        return None
    encode = codec_of(charset).encode
    return lambda query: encode(query, _BY_NUMBER)[0]


def _by_number(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(char)}%3B" for char in lacking), error.end


_BY_NUMBER = "larmspider.by-number"
codecs.register_error(_BY_NUMBER, _by_number)


def _decode_as(body: bytes, charset: str) -> str:
    """Bad bytes become U+FFFD."""
    for bom, name in _BOMS:
        if name == charset:
            body = body.removeprefix(bom)
    if charset == "gbk":  # Encoding Standard 10.1.1: both have one decoder
        return body.decode("gb18030", "replace")
    errors = _BY_JIS if charset in ("iso-2022-jp", "euc-jp") else "replace"
    return codec_of(charset).decode(body, errors)[0]


def codec_of(charset: str) -> codecs.CodecInfo:
    """The codec of a charset by its name; browsers know no charset of DOS."""
    encoding = webencodings.lookup(charset)
    info: codecs.CodecInfo = codecs.lookup(charset) if encoding is None else encoding.codec_info
    return info


def _by_jis(error: UnicodeError) -> tuple[str, int]:
    """Characters of NEC and IBM (① ㈱ 髙), which the Standard's index of JIS X 0208 has, and
    Python's codecs have in Shift JIS alone."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    if len(pair) == 2 and all(byte & 0x7F > 0x20 for byte in pair):
        row, cell = (byte & 0x7F for byte in pair)
        lead = ((row - 1) >> 1) + (0x71 if row < 0x5F else 0xB1)
        trail = cell + ((0x1F if cell < 0x60 else 0x20) if row & 1 else 0x7E)
        try:
            return bytes((lead, trail)).decode("cp932"), error.start + 2
        except UnicodeDecodeError:
            pass
    return "\ufffd", error.end


_BY_JIS = "larmspider.by-jis"
codecs.register_error(_BY_JIS, _by_jis)


def _lookup(label: str) -> str | None:
    encoding = webencodings.lookup(strip_html5_whitespace(label))
    return None if encoding is None else encoding.name


def _lookup_in_markup(label: bytes) -> str | None:
    """The charset of a label in markup. It cannot be UTF-16, because the label was readable."""
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
    """chardetng, the detector of Firefox, if the extra ``charset`` is installed; else
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
    if error.reason == _CUT_OFF:
        return "utf-8"
    start = max(0, error.start - _BEFORE)
    sample = body[start : start + SAMPLE_BYTES]
    found = _detect(sample) or FALLBACK
    encoding = webencodings.lookup(found)
    name = _by_codec().get(_codec(found), FALLBACK) if encoding is None else encoding.name
    return old_charsets.instead_of(name, _decode_as(sample, name), sample)


@cache
def _by_codec() -> dict[str, str]:
    """The WHATWG name for a Python name, as detectors return it: cp874 is windows-874 (Thai)."""
    encodings = map(webencodings.lookup, sorted(set(LABELS.values())))
    names = {encoding.codec_info.name: encoding.name for encoding in encodings}
    return names | {"euc_kr": "euc-kr", "tis-620": "windows-874"}


def _codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""
