"""RTF (1.9.1) by our reader: a stack of groups, and a table of the meanings of words.

It takes title and author, the text with lists, tables and the results of fields, HYPERLINK fields
as links, and, each as a block after its paragraph: headers, footers, footnotes, endnotes,
comments, text boxes and WordArt. Bytes are in the charset of their font, else in ``\\ansicpg``.

Not read: deleted and moved-away text, the instructions of other fields, index and contents entries,
pictures, embedded objects except for their shown result, and authors and dates of comments. HTML
that Outlook wraps into RTF is read as RTF, with the links of its markup.

Braces may be missing or too many. Text after the last one is read; Word does not read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from html import unescape

from larmspider.extraction.documents.labels import fits, of_codepage, text_of
from larmspider.extraction.documents.office.fields import shown
from larmspider.extraction.documents.reading import DocumentBuilder, Unread, keeping
from larmspider.extraction.documents.rtf_words import (
    ASIDE,
    AUTHOR,
    CHARACTERS,
    CHARSETS,
    CHOICE,
    DEAD,
    DESTINATIONS,
    ENDS,
    FONTS,
    GATHERED,
    INSTRUCTION,
    LATIN,
    NAME,
    QUIET,
    RESULT,
    SYMBOLS,
    TAG,
    TEXT,
    TITLE,
    VALUE,
    WIDE,
    WORD_ART,
)
from larmspider.extraction.pages.note_numbers import is_note_behind
from larmspider.extraction.pages.page_builder import MAX_TEXT
from larmspider.items import Outcome, Page

_BEGIN = re.compile(rb"\{\s*\\u?rtf")
_BEGIN_BYTES = 1_024
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(?:\r\n|(.))|([{}])|([^\\{}]++)|\\",
    re.DOTALL,
)
_LINE_ENDS = b"\r\n\0"
_HYPERLINK = re.compile(r"\s*HYPERLINK\b", re.IGNORECASE)
_ARGUMENT = re.compile(r"\\([a-z])(?=[\s\"])|\"([^\"]*)\"?|(\S+)", re.IGNORECASE)
_WITH_VALUE = ("l", "o", "t")  # a bookmark, a tip, a frame
_HREF = re.compile(r"<a\s[^<>]{0,500}?href\s*=\s*[\"']?([^\"'<>\s]{1,4000})", re.IGNORECASE)
_BESIDE_ASCII = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z]")
_AT_SPACE = re.compile(rb"(?<=[ -@])(?=[^ -@])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 5_000
"""Nested groups whose state is kept. Deeper groups share a state."""
_MAX_ANCHOR = 500
_UNCHOSEN = 25  # the value of a drop-down field with its default choice


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    begin = _BEGIN.search(body, 0, _BEGIN_BYTES)
    if begin is None:
        raise Unread(Outcome.DAMAGED, "it does not begin as RTF does")
    builder = DocumentBuilder()
    with keeping(builder, url):
        _Reader(builder).read(body, begin.start())
    return builder.page(url)


def add_rtf(body: bytes, builder: DocumentBuilder) -> None:
    """Add text and links of ``body`` to ``builder``, which keeps a title that it has."""
    title, author = builder.title, builder.author
    _Reader(builder).read(body, 0)
    builder.title, builder.author = title or builder.title, author or builder.author


class _Group:
    """The state that ends with its group. ``out``: where its text goes."""

    __slots__ = ("font", "gone", "kind", "out", "raised", "skips", "start")

    def __init__(self, out: list[str]) -> None:
        self.kind, self.out = TEXT, out
        self.font: int | None = None
        self.gone = False  # deleted, or moved away
        self.raised = False
        self.skips = 1  # characters that stand for one in Unicode
        self.start = 0


class _Reader:
    def __init__(self, builder: DocumentBuilder) -> None:
        self.builder = builder
        self.main: list[str] = []
        self.group = _Group(self.main)
        self.groups: list[_Group] = []
        self.deeper = 0  # groups beyond _MAX_DEPTH
        self.asides: list[str] = []
        self.codepage = LATIN
        self.default_font: int | None = None
        self.fonts: dict[int, int] = {}
        self.pending = bytearray()
        self.pending_font: int | None = None
        self.size = 0
        self.skip = 0
        self.starred = False
        self.targets: list[str] = []
        """URLs of fields whose result has not come yet."""
        self.art = False  # the next value is the text of WordArt
        self.choices: list[str] = []
        """Entries of the drop-down field under way; only the shown one is text."""
        self.chosen: int | None = None

    def read(self, body: bytes, at: int) -> None:
        match = _TOKEN.match
        while found := match(body, at):
            at = found.end()
            word, number, hexed, symbol, brace, text = found.groups()
            if text is not None:
                self._add_bytes(text.translate(None, _LINE_ENDS))
            elif brace is not None:
                self._open() if brace == b"{" else self._close()
            elif word is not None:
                value = int(number) if number else None
                if word == b"bin":
                    at += max(0, value or 0)
                elif self.group.kind != DEAD or self.starred:
                    self._word(word.decode("ascii"), value)
            elif hexed is not None:
                self._add_bytes(bytes((int(hexed, 16),)))
            else:
                self._symbol(symbol)
        self._flush()
        while self.groups:
            self._close()
        self._add_link("")
        self._end_paragraph()

    def _open(self) -> None:
        self._flush()
        self.starred, self.skip = False, 0
        if len(self.groups) >= _MAX_DEPTH:
            self.deeper += 1
            return
        self.groups.append(self.group)
        self.group = copy(self.group)

    def _close(self) -> None:
        self._flush()
        self.starred, self.skip = False, 0
        if self.deeper:
            self.deeper -= 1
        elif self.groups:
            ended, self.group = self.group, self.groups.pop()
            if ended.kind != self.group.kind or ended.out is not self.group.out:
                self._ended(ended)

    def _ended(self, group: _Group) -> None:
        """Use the text of a destination that ends."""
        if group.kind == RESULT:
            if self.choices and not "".join(group.out[group.start :][:_MAX_ANCHOR]).strip():
                at = self.chosen or 0
                group.out += self.choices[at : at + 1]
            self.choices, self.chosen = [], None
            self._add_link("".join(group.out[group.start :][:_MAX_ANCHOR])[:_MAX_ANCHOR])
        if group.out is self.group.out:
            return
        text = _whole("".join(group.out))
        if group.kind == ASIDE and text.strip():
            self.asides.append(text)
        elif group.kind == TITLE:
            self.builder.title = self.builder.title or text.strip()
        elif group.kind == AUTHOR:
            self.builder.author = self.builder.author or text.strip()
        elif group.kind == INSTRUCTION:
            self._instruction(text)
        elif group.kind == NAME:
            self.art = text.strip() == WORD_ART
        elif group.kind == VALUE and self.art:
            self.asides.append(text)
            self.art = False
        elif group.kind == CHOICE:
            self.choices.append(text.strip())
        elif group.kind == TAG:
            for target in _HREF.findall(text):
                self.builder.add_link(unescape(target))

    def _instruction(self, text: str) -> None:
        """Note the URL of a HYPERLINK; a backslash in it is doubled."""
        if seen := shown(text.replace("\\\\", "\\")):
            self._add(f" {seen} ")
        if not (found := _HYPERLINK.match(text)):
            return
        self._add_link("")  # the last field had no result
        switch = ""
        for flag, quoted, bare in _ARGUMENT.findall(text, found.end()):
            if not flag and switch not in _WITH_VALUE:
                self.targets.append((quoted or bare).replace("\\\\", "\\"))
                return
            switch = flag.lower()

    def _add_link(self, text: str) -> None:
        if self.targets:
            self.builder.add_link(self.targets.pop(), " ".join(_whole(text).split()))

    def _word(self, word: str, value: int | None) -> None:
        starred, self.starred = self.starred, False
        group = self.group
        if (kind := DESTINATIONS.get(word.lower())) is not None:
            self._enter(kind)
        elif starred:
            group.kind = DEAD
        elif word == "u" and value is not None:
            self._flush()
            self._add(chr(value & 0xFFFF) if value < 0x10000 else chr(min(value, 0x10FFFF)))
            self.skip = group.skips
        elif self.skip and word in CHARACTERS:
            self.skip -= 1
        elif word in CHARACTERS:
            self._flush()
            self._add(CHARACTERS[word])
        elif word in ENDS:
            self._flush()
            self._add("\n")
            if group.out is self.main and group.kind == TEXT:
                self._end_paragraph()
        elif (action := _ACTIONS.get(word)) is not None:
            action(self, value)

    def _enter(self, kind: str) -> None:
        group = self.group
        if group.kind in (DEAD, FONTS):
            return
        self._flush()
        if kind in GATHERED or kind == ASIDE:
            group.out = []
        elif kind == TEXT:
            if group.kind != QUIET:
                return
        elif kind == RESULT:
            if group.kind in GATHERED or group.kind == QUIET:
                return
            group.start = len(group.out)
        group.kind = kind

    def _font(self, value: int | None) -> None:
        self.group.font = value
        if self.group.kind == FONTS and value is not None:
            self.fonts.setdefault(value, 0)

    def _charset(self, value: int | None) -> None:
        if self.group.kind == FONTS and self.group.font is not None and value is not None:
            self.fonts[self.group.font] = CHARSETS.get(value, 0)

    def _font_codepage(self, value: int | None) -> None:
        if self.group.kind == FONTS and self.group.font is not None and value:
            self.fonts[self.group.font] = value

    def _plain(self, _value: int | None) -> None:
        self._flush()
        self.group.font, self.group.gone = self.default_font, False
        self.group.raised = False

    def _raise(self, value: int | None) -> None:
        self._flush()
        self.group.raised = value != 0

    def _lower(self, _value: int | None) -> None:
        self._flush()
        self.group.raised = False

    def _deleted(self, value: int | None) -> None:
        self._flush()
        self.group.gone = value != 0

    def _choose(self, value: int | None) -> None:
        if self.chosen is None and value is not None and 0 <= value != _UNCHOSEN:
            self.chosen = value

    def _skips(self, value: int | None) -> None:
        self.group.skips = max(0, min(value if value is not None else 1, 100))

    def _default_font(self, value: int | None) -> None:
        self.default_font = value

    def _set_codepage(self, value: int | None) -> None:
        if value:
            self.codepage = value

    def _symbol(self, symbol: bytes | None) -> None:
        if symbol == b"*":
            self.starred = True
        elif symbol in (None, b"\r", b"\n"):
            self._word("par", None)
        elif self.group.kind == DEAD:
            pass
        elif self.skip:
            self.skip -= 1
        elif symbol in (b"\\", b"{", b"}"):
            self._add_bytes(symbol)
        elif symbol in SYMBOLS:
            self._flush()
            self._add(SYMBOLS[symbol])

    def _add_bytes(self, data: bytes) -> None:
        group = self.group
        if group.kind in (DEAD, QUIET, FONTS) or not data:
            return
        if self.skip:
            skipped = min(self.skip, len(data))
            self.skip -= skipped
            data = data[skipped:]
        if group.font != self.pending_font:
            self._flush()
            self.pending_font = group.font
        self.pending += data

    def _flush(self) -> None:
        """Bytes that have waited for the rest of a character become text."""
        if self.pending:
            data, self.pending = bytes(self.pending), bytearray()
            self._add(data.decode("ascii") if data.isascii() else self._decoded(data))

    def _decoded(self, data: bytes) -> str:
        font = self.default_font if self.pending_font is None else self.pending_font
        codepage = self.fonts.get(font, 0) if font is not None else 0
        if codepage == LATIN and self.codepage not in (*WIDE, LATIN):
            # many programs write charset 0, and mean the charset of their system
            return "".join(self._latin_or_not(word) for word in _AT_SPACE.split(data))
        if codepage in (0, LATIN):
            codepage = self.codepage
        return _in_one_of((codepage, self.codepage, LATIN), data)

    def _latin_or_not(self, word: bytes) -> str:
        first = LATIN if _BESIDE_ASCII.search(word) else self.codepage
        return _in_one_of((first, LATIN), word)

    def _add(self, text: str) -> None:
        group = self.group
        if not group.gone and group.kind not in (DEAD, QUIET, FONTS):
            if group.raised and text[:1].isdigit() and is_note_behind("".join(group.out[-3:])):
                group.out.append(" ")
            group.out.append(text)
            self.size += len(text)
            if self.size > MAX_TEXT:
                self._end_paragraph()
                raise Unread(Outcome.TOO_LONG, f"has more than {MAX_TEXT:,} characters of text")

    def _end_paragraph(self) -> None:
        text = _whole("".join(self.main))
        self.main.clear()
        for block in (text, *self.asides):
            if block.strip():
                self.builder.add(block)
        self.asides.clear()


def _whole(text: str) -> str:
    """Characters that were written in two halves, put together."""
    if _SURROGATE.search(text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _in_one_of(codepages: Iterable[int], data: bytes) -> str:
    """``data`` in the first of ``codepages`` that has all of it, else in the first."""
    labels = list(map(of_codepage, codepages))
    return text_of(data, next((label for label in labels if fits(data, label)), labels[0]))


_ACTIONS: dict[str, Callable[[_Reader, int | None], None]] = {
    "f": _Reader._font,
    "fcharset": _Reader._charset,
    "cpg": _Reader._font_codepage,
    "plain": _Reader._plain,
    "deleted": _Reader._deleted,
    "mvf": _Reader._deleted,
    "super": _Reader._raise,
    "up": _Reader._raise,
    "nosupersub": _Reader._lower,
    "uc": _Reader._skips,
    "ffres": _Reader._choose,
    "ffdefres": _Reader._choose,
    "deff": _Reader._default_font,
    "ansicpg": _Reader._set_codepage,
    "mac": lambda reader, _: reader._set_codepage(10000),
    "pc": lambda reader, _: reader._set_codepage(437),
    "pca": lambda reader, _: reader._set_codepage(850),
}
