"""Decodes bytes whose charset a mail, an RTF file or a program of Outlook names, or fails to name.

    text_of(b"\\xd6\\xec", "gb2312")                   # "\u6731": WHATWG reads the label as GBK
    text_of("Köln".encode(), "us-ascii")             # "K\u00f6ln": no ASCII, so it is guessed
    text_of(b"\\xc4", of_codepage(1251))              # "\u0414"

A label means what it means to browsers (WHATWG Encoding 4.2), else what it means to Python
(utf-7, cp850, iso-2022-kr). ASCII, ``default`` and unknown labels declare nothing: the bytes are
then UTF-8 if they decode, else guessed like a page's charset (charset.py).
"""

from __future__ import annotations

import codecs
import re

import webencodings

from larmspider.extraction.texts.charset import FALLBACK, SAMPLE_BYTES, decode, guess

_ASCII = frozenset(("us-ascii", "ascii", "ansi_x3.4-1968", "iso-ir-6", "646", "x-user-defined"))
"""Labels of plain ASCII, which need no charset: programs write them above anything."""
_NO_CHARSETS = frozenset(("ascii", "idna", "punycode", "unicode_escape", "raw_unicode_escape"))
"""Codecs of Python that are not charsets of texts."""
_REPLACED = "replacement"
"""WHATWG's name for charsets that browsers refuse, such as ISO-2022-KR. Text is harmless here."""
_NUMBERED = re.compile(r"(?:x-)?(?:cp|win|windows|ms|ibm|dos|codepage)[-_ ]?0*(\d{3,5})")
_CUT_OFF, _WIDE = "unexpected end of data", ("utf-16le", "utf-16be")
_SHIFT = re.compile(rb"[\x1b~+\0]")
"""Bytes that change the meaning of ASCII in some charset."""
_JAPANESE = re.compile(rb"\x1b\$[@B]|\x1b\([JI]")
_ISO_8859, _UTF_7, _ISO_2022_JP = 28590, "utf-7", "iso-2022-jp"
_CODEPAGES = {
    1200: "utf-16le", 1201: "utf-16be", 65000: _UTF_7, 65001: "utf-8", 20127: "us-ascii",
    932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5", 1361: "johab", 874: "windows-874",
    10000: "macintosh", 10001: "shift_jis", 10002: "big5", 10003: "euc-kr", 10006: "mac-greek",
    10007: "x-mac-cyrillic", 10008: "gbk", 10021: "windows-874", 10029: "mac-latin2",
    10079: "mac-iceland", 10081: "mac-turkish", 20866: "koi8-r", 21866: "koi8-u",
    20932: "euc-jp", 51932: "euc-jp", 50220: "iso-2022-jp", 50221: "iso-2022-jp",
    50222: "iso-2022-jp", 50225: "iso-2022-kr", 51949: "euc-kr", 20949: "euc-kr",
    20936: "gbk", 51936: "gbk", 52936: "hz", 54936: "gb18030", 38598: "iso-8859-8-i",
}  # fmt: skip


def of_codepage(number: int) -> str:
    """The label of a code page of Windows; "" for 0."""
    if _ISO_8859 < number <= _ISO_8859 + 16:
        return f"iso-8859-{number - _ISO_8859}"
    return _CODEPAGES.get(number, f"cp{number}" if number > 0 else "")


def known(label: str) -> str:
    """The name of the charset that ``label`` declares, if possible a WHATWG name; "" if it declares
    none."""
    label = label.strip(" \t\r\n\"'=;,\0").lower()
    if not label or label in _ASCII or not label.isascii():
        return ""
    encoding = webencodings.lookup(label)
    if encoding is not None and encoding.name != _REPLACED:
        return str(encoding.name)
    if numbered := _NUMBERED.fullmatch(label):
        other = of_codepage(int(numbered[1]))
    else:
        other = _ISO_2022_JP if label.startswith(_ISO_2022_JP) else label.replace(" ", "-")
    return known(other) if other != label else _of_python(label)


def _of_python(label: str) -> str:
    try:
        codec = codecs.lookup(label)
    except (LookupError, ValueError):
        return ""
    if codec.name.replace("-", "_") in _NO_CHARSETS or not codec._is_text_encoding:
        return ""
    encoding = webencodings.lookup(codec.name)
    return codec.name if encoding is None else str(encoding.name)


def text_of(data: bytes, label: str = "", sample: bytes = b"") -> str:
    """``data`` as text; bad bytes become U+FFFD. ``sample``: more bytes by the same author, which
    make a guess safer."""
    if data.isascii() and not _SHIFT.search(data) and "16" not in label:
        return data.decode("ascii")
    if not (charset := known(label)):
        return _guessed(data, sample)
    if webencodings.lookup(charset) is not None:
        return _as(charset, data)
    text = data.decode(charset, "replace")
    if charset == _UTF_7:  # it can name halves of a character
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def fits(data: bytes, label: str) -> bool:
    """Whether ``label`` declares a charset in which all of ``data`` is text."""
    charset = known(label)
    encoding = webencodings.lookup(charset) if charset else None
    try:
        data.decode(encoding.codec_info.name if encoding else charset or "ascii")
    except UnicodeDecodeError:
        return False
    return True


def _guessed(data: bytes, sample: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    if data.isascii() and _JAPANESE.search(data):
        return _as(_ISO_2022_JP, data)
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        if error.reason == _CUT_OFF and not data[: error.start].isascii():
            return data.decode(errors="replace")
    return _as(_guess(data + b"\n" + _alike(sample, len(data))), data)


def _guess(data: bytes) -> str:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return guess(data, error)
    return FALLBACK


def _as(charset: str, data: bytes) -> str:
    """``data`` in a charset of WHATWG, unless its bytes prove another one. The added line end shows
    that the last byte is a whole character, as in "Caf\xe9"."""
    if charset in _WIDE:
        return decode(data, f"text/plain; charset={charset}")[0]
    return decode(data + b"\n", f"text/plain; charset={charset}")[0].removesuffix("\n")


def _alike(sample: bytes, size: int) -> bytes:
    """The stretch of ``sample`` that helps to guess: bytes beyond ASCII that are not UTF-8."""
    if not sample or size > SAMPLE_BYTES:
        return b""
    try:
        sample.decode()
    except UnicodeDecodeError as error:
        return sample[max(0, error.start - SAMPLE_BYTES // 4) :][:SAMPLE_BYTES]
    return b""
