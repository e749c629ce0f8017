"""Calendars and visiting cards: iCalendar (RFC 5545), vCard 2.1, 3 (RFC 2426) and 4 (RFC 6350).

The text has all lines as they stand. Folded lines are joined; escapes (``\\\\n``, ``\\\\,``) and
quoted-printable are decoded, in the CHARSET of the line, else of the file. The title is the first
calendar name, summary or full name; URLs are links. Not read: pictures and sounds.
"""

from __future__ import annotations

import re
from binascii import a2b_qp
from collections.abc import Iterator

from larmspider.extraction.documents.labels import text_of
from larmspider.extraction.documents.reading import DocumentBuilder, urls_in
from larmspider.extraction.documents.text_page import text_page
from larmspider.extraction.texts.charset import charset_of, decode
from larmspider.items import Page

_MARK, _SPACE, _SPACES = b"\xef\xbb\xbf", b" \t", (b" ", b"\t")
_FOLD = re.compile(rb"\r?\n[ \t]")
"""A folded line end. It may be inside a character of several bytes."""
_OLD = re.compile(rb"^VERSION:(?:2\.1|1\.0)\b", re.IGNORECASE | re.MULTILINE)
_LINE = re.compile(rb"([^:;\s]{1,100})((?:;(?:[^:\";\r\n]|\"[^\"\r\n]*\")*+)*+):(.*)", re.DOTALL)
_QUOTED_PRINTABLE = re.compile(rb";(?:ENCODING=)?QUOTED-PRINTABLE\b", re.IGNORECASE)
_BASE64 = re.compile(rb";(?:ENCODING=)?(?:B|BASE64)(?=;|\Z)", re.IGNORECASE)
_DATA = re.compile(rb"data:[^,]{0,200};base64,", re.IGNORECASE)
_CHARSET = re.compile(rb";CHARSET=\"?([\w.:-]+)", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([nN,;:\\])")
_TITLES = (b"X-WR-CALNAME", b"NAME", b"SUMMARY", b"FN")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    charset = charset_of(_FOLD.sub(b"", body), content_type)
    if charset.startswith("utf-16"):
        body, charset = decode(body, content_type)[0].encode("utf-8", "replace"), "utf-8"
    is_old = _OLD.search(body) is not None
    builder, shown = DocumentBuilder(), list[str]()
    titles: dict[bytes, str] = {}
    for line in _lines(body.removeprefix(_MARK), is_old=is_old):
        found = _LINE.match(line)
        if found is None:
            shown.append(text_of(line, charset))
            continue
        name, parameters, value = found.groups()
        if _BASE64.search(parameters) or _DATA.match(value):
            continue
        text = _value(parameters, value, charset)
        text = text.replace("\\;", ";") if is_old else _ESCAPE.sub(_unescaped, text)
        titles.setdefault(name.rpartition(b".")[2].upper(), text)
        shown.append(f"{text_of(name + parameters, charset)}:{text}" if text else "")
    builder.title = next(filter(None, map(titles.get, _TITLES)), "")
    whole = "\n".join(shown)
    return text_page(whole, charset, url, builder, urls=urls_in(whole))


def _lines(body: bytes, *, is_old: bool) -> Iterator[bytes]:
    """The unfolded lines. vCard 2.1 folds at a space, and the space stays."""
    pieces: list[bytes] = []
    is_quoted = False
    for line in body.splitlines():
        if is_quoted and pieces[-1].endswith(b"="):
            pieces[-1] = pieces[-1][:-1]
            pieces.append(line.lstrip(_SPACE))
        elif pieces and line[:1] in _SPACES and line:
            pieces.append(line if is_old else line[1:])
        else:
            if pieces:
                yield b"".join(pieces)
            pieces = [line]
            is_quoted = _QUOTED_PRINTABLE.search(line.partition(b":")[0]) is not None
    yield b"".join(pieces)


def _value(parameters: bytes, value: bytes, charset: str) -> str:
    if not parameters:
        return text_of(value, charset)
    label = _CHARSET.search(parameters)
    if _QUOTED_PRINTABLE.search(parameters):
        value = a2b_qp(value)
    return text_of(value, label[1].decode("latin-1") if label else charset)


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] in "nN" else found[1]
