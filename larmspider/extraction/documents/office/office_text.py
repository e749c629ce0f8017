"""The text of one part of Office Open XML, with its links: only the words that are shown.

    add_text(root, {"r1": "http://h/"}, builder)

Read are paragraphs of Word, of drawings (slides, diagrams, charts) and of comments, with every
element that stands for a letter or a break (ECMA-376-1 17.3.3), formulas, and fields that are
links. A raised number after a word stands apart (note_numbers.py). A text box, the reading of a
ruby and a WordArt are blocks apart. The first alternative with text counts (ECMA-376-3). No text
are deleted words, the old places of moved words, the numbers of notes, authors and dates, codes of
fields, the numbers that a chart draws, and alternative texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lxml import etree

from larmspider.extraction.documents.office.fields import shown
from larmspider.extraction.documents.reading import DocumentBuilder
from larmspider.extraction.pages.note_numbers import is_note_behind

_OPEN = "{http://schemas.openxmlformats.org/"
W = _OPEN + "wordprocessingml/2006/main}"
A = _OPEN + "drawingml/2006/main}"
P = _OPEN + "presentationml/2006/main}"
S = _OPEN + "spreadsheetml/2006/main}"
R = _OPEN + "officeDocument/2006/relationships}"
_M = _OPEN + "officeDocument/2006/math}"
_C = _OPEN + "drawingml/2006/chart}"
_MC = _OPEN + "markup-compatibility/2006}"
_CX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_TC = "{http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments}"
_V = "{urn:schemas-microsoft-com:vml}"

_TEXT = (W + "t", A + "t", _M + "t", S + "t")
_BLOCK = (W + "p", A + "p", S + "comment")
_LINE = (P + "text", _C + "v", _CX + "v", _CX + "pt", _TC + "text")
"""Elements that are a block with the text of it."""
_SIGNS = dict.fromkeys(
    [f"{W}{name}" for name in ("br", "cr", "tab", "ptab", "footnoteReference", "endnoteReference")]
    + [f"{W}{part}{form}" for part in ("day", "month", "year") for form in ("Short", "Long")]
    + [f"{_M}{name}" for name in ("r", "num", "den", "sub", "sup", "deg", "e", "lim", "fName")]
    + [A + "br", A + "tab", W + "pgNum"],
    " ",
) | {W + "noBreakHyphen": "-"}
"""Elements that separate words, and one that is a letter; a w:softHyphen joins its neighbours."""
_STYLE, _SYMBOL, _CHUNK = W + "pStyle", W + "sym", W + "altChunk"
_LINK, _CODE, _FIELD, _SIMPLE = W + "hyperlink", W + "instrText", W + "fldChar", W + "fldSimple"
_CHOICES = W + "ddList"
_WANTED = (*_TEXT, *_BLOCK, *_LINE, *_SIGNS, *(_STYLE, _SYMBOL, _CHUNK, _LINK))
_WANTED = (*_WANTED, *(_CODE, _FIELD, _SIMPLE, _CHOICES))

_DROPPED = (
    *(f"{W}{name}" for name in ("del", "moveFrom", "pPrChange", "delText")),
    *(f"{_C}{name}" for name in ("val", "yVal", "bubbleSize", "errBars")),
    *(_CX + "numDim", S + "rPh"),
)
_MARKS = tuple(
    f"{W}{name}{end}"
    for name in ("bookmark", "commentRange", "moveFromRange", "moveToRange", "perm")
    for end in ("Start", "End")
)
"""Elements between paragraphs that show nothing."""
_ALTERNATIVES = _MC + "AlternateContent"
_BOX, _VML_BOX, _ART, _READING = W + "txbxContent", _V + "textbox", _V + "textpath", W + "rt"
_APART = (_BOX, _VML_BOX, _ART, _READING)

_HEADING = re.compile(r"(?i)title|titel|heading|berschrift|titre")
_HYPERLINK = re.compile(r"(?is)\s*HYPERLINK\b(.*)")
_ARGUMENT = re.compile(r'["\u201c-\u201e]((?:[^"\u201c-\u201e\\]|\\.)*).?|(\\.)|([^\s"]+)')
_WITH_VALUE = ("\\l", "\\o", "\\t", "\\s")
_LONGEST_NOTE, _PIECES_BEFORE = 5, 3  # "12,13"
_MAX_FIELDS = 100  # nested fields
_GREEK = dict(zip(b"abcdefghijklmnopqrstuwxyz", "αβχδεφγηιϕκλμνοπθρστυωξψζ", strict=True))
_GREEK |= dict(zip(b"ABCDEFGHIKLMNOPQRSTUWXYZ", "ΑΒΧΔΕΦΓΗΙΚΛΜΝΟΠΘΡΣΤΥΩΞΨΖ", strict=True))
"""Letters of the font Symbol."""
_SYMBOL_FONTS = re.compile(r"(?i)symbol|dings|mt extra|marlett")


def add_text(
    root: Any,
    targets: dict[str, str],
    builder: DocumentBuilder,
    chunk: Callable[[str], None] = lambda _: None,
) -> None:
    """Text and links of the part, whose hyperlinks lead to ``targets`` by their ids. ``chunk`` is
    called with the id of each altChunk (17.17.2.1), at its place."""
    _leave_out(root)
    apart = _take_apart(root)
    _Writer(targets, builder, chunk).read(root)
    for element in apart:
        if element.tag == _ART:
            builder.add(element.get("string", ""))
        elif element.tag == _VML_BOX and element.find(f".//{W}p") is None:
            builder.add(" ".join(element.itertext()))
        else:
            _Writer(targets, builder, chunk).read(element)
    for click in root.iter(A + "hlinkClick"):
        if target := targets.pop(click.get(R + "id", ""), ""):
            run = next(click.iterancestors(A + "r"), None)
            builder.add_link(target, "" if run is None else _shown(run))
    for target in targets.values():
        builder.add_link(target)


def title_of(root: Any) -> str:
    """The title of a slide."""
    for shape in root.iter(P + "sp"):
        kind = shape.find(f".//{P}nvPr/{P}ph")
        if kind is not None and kind.get("type") in ("title", "ctrTitle"):
            paragraphs = (_shown(paragraph) for paragraph in shape.iter(A + "p"))
            if title := " ".join(filter(None, paragraphs)):
                return title
    return ""


def is_threads(root: Any) -> bool:
    """Whether the part has the comments of a sheet with their answers."""
    return bool(root.tag == _TC + "ThreadedComments")


def leave_out_threads(root: Any) -> None:
    """Remove comments of a sheet that repeat a thread for an older Excel."""
    authors = [author.text or "" for author in root.iter(S + "author")]
    repeated = {str(number) for number, one in enumerate(authors) if one.startswith("tc=")}
    for comment in list(root.iter(S + "comment")):
        if comment.get("authorId") in repeated:
            comment.getparent().remove(comment)


def _is_note(element: Any, text: str, pieces: list[str]) -> bool:
    """Whether ``text`` is the number of a note, after a word."""
    return (
        len(text) <= _LONGEST_NOTE
        and _is_raised(element)
        and is_note_behind("".join(pieces[-_PIECES_BEFORE:]))
    )


def _is_raised(text: Any) -> bool:
    """Whether a run stands above the line (ECMA-376-1 17.3.2.42, 21.1.2.3.9)."""
    properties = text.getprevious()
    if properties is None:
        return False
    if (align := properties.find(W + "vertAlign")) is not None:
        return bool(align.get(W + "val") == "superscript")
    return properties.get("baseline", "0")[:1] in "123456789"


def _shown(element: Any) -> str:
    return "".join(_SIGNS.get(one.tag) or one.text or "" for one in element.iter(*_TEXT, *_SIGNS))


def _leave_out(root: Any) -> None:
    for element in list(root.iter(_ALTERNATIVES, *_DROPPED)):
        if element.tag == _ALTERNATIVES:
            branches = list(element)
            kept = next(filter(_has_text, branches), branches[0] if branches else None)
            for branch in branches:
                if branch is not kept:
                    element.remove(branch)
        elif (parent := element.getparent()) is not None:
            if parent.tag == W + "rPr":
                _join_paragraphs(parent.getparent())
            parent.remove(element)


def _join_paragraphs(properties: Any) -> None:
    """Where the end of a paragraph was deleted (17.13.5.15), the next paragraph continues it."""
    if properties is not None and properties.tag == W + "pPr":
        siblings = properties.getparent().itersiblings()
        following = next((one for one in siblings if one.tag not in _MARKS), None)
        if following is not None and following.tag == W + "p":
            following.tag = W + "joined"


def _has_text(branch: Any) -> bool:
    return any((text.text or "").strip() for text in branch.iter(*_TEXT))


def _take_apart(root: Any) -> list[Any]:
    """Remove the elements that are not text of the paragraph around them. A box parts words."""
    apart = [element for element in root.iter(*_APART) if element is not root]
    for element in apart:
        space = etree.Element(_READING if element.tag == _READING else W + "br")
        element.getparent().replace(element, space)
    return apart


class _Writer:
    """Hands paragraphs to the builder."""

    def __init__(
        self, targets: dict[str, str], builder: DocumentBuilder, chunk: Callable[[str], None]
    ) -> None:
        self._targets, self._builder, self._chunk = targets, builder, chunk
        self._pieces: list[str] = []
        self._heading = False
        self._fields: list[_Field] = []
        self._loose = _Field()
        """The code of fields whose begin is missing."""

    def read(self, root: Any) -> None:
        pieces = self._pieces
        for element in root.iter(*_WANTED):
            tag = element.tag
            if tag in _TEXT:
                text = element.text or ""
                if text[:1].isdigit() and _is_note(element, text, pieces):
                    pieces.append(" ")
                pieces.append(text)
            elif tag in _BLOCK:
                self._end_block()
            elif tag in _SIGNS:
                pieces.append(_SIGNS[tag])
            elif tag in _LINE:
                self._end_block()
                pieces.append(element.text or "")
            else:
                self._other(tag, element)
        self._end_block()
        for field in self._fields:
            field.end(self._builder, "")

    def _other(self, tag: str, element: Any) -> None:
        if tag == _STYLE:
            self._heading = _HEADING.search(element.get(W + "val", "")) is not None
        elif tag == _SYMBOL:
            self._pieces.append(_symbol(element))
        elif tag == _LINK:
            if target := self._targets.pop(element.get(R + "id", ""), ""):
                self._builder.add_link(target, _shown(element))
        elif tag == _SIMPLE:
            field = _Field(element.get(W + "instr", ""))
            if not (text := _shown(element)):
                self._pieces.append(field.shown())
            field.end(self._builder, text)
        elif tag == _CODE:
            (self._fields[-1] if self._fields else self._loose).code.append(element.text or "")
        elif tag == _CHOICES:
            if self._fields:
                self._fields[-1].chosen = _chosen(element)
            else:
                self._pieces.append(_chosen(element))
        elif tag == _FIELD:
            self._field(element.get(W + "fldCharType", ""))
        else:
            self._end_block()
            self._chunk(element.get(R + "id", ""))

    def _field(self, kind: str) -> None:
        if kind == "begin" and len(self._fields) < _MAX_FIELDS:
            self._fields.append(_Field())
            self._fields[-1].begin = len(self._pieces)
        elif not self._fields:
            self._end_loose()
        elif kind == "separate":
            del self._pieces[self._fields[-1].begin :]  # results of fields in its code
            self._fields[-1].start = len(self._pieces)
        elif kind == "end":
            field = self._fields.pop()
            if field.start is None or field.start == len(self._pieces):
                self._pieces.append(field.shown())
                field.start = len(self._pieces)
            field.end(self._builder, "".join(self._pieces[field.start :]))

    def _end_loose(self) -> None:
        self._loose.end(self._builder, "")
        self._loose = _Field()

    def _end_block(self) -> None:
        """The first heading is the title of a document without one."""
        builder = self._builder
        if text := "".join(self._pieces):
            builder.add(text)
            if self._heading and not builder.title and not text.isspace():
                builder.title = text
            self._pieces.clear()
            for field in self._fields:
                field.start, field.begin = field.start and 0, 0
        if self._loose.code:
            self._end_loose()
        self._heading = False


class _Field:
    """A field (17.16), which is of use if it is a HYPERLINK (17.16.5.25)."""

    __slots__ = ("begin", "chosen", "code", "start")

    def __init__(self, *code: str) -> None:
        self.code = list(code)
        self.chosen = ""
        """The chosen entry of a list in an old form."""
        self.begin = 0
        """Pieces of the paragraph before its code."""
        self.start: int | None = None
        """Pieces of the paragraph before its text; None until its text begins."""

    def shown(self) -> str:
        """The text of a field without a result."""
        return f" {text} " if (text := self.chosen or shown("".join(self.code))) else ""

    def end(self, builder: DocumentBuilder, text: str) -> None:
        found = _HYPERLINK.fullmatch("".join(self.code))
        before = ""
        for quoted, switch, word in _ARGUMENT.findall(found[1] if found else ""):
            if not switch and before not in _WITH_VALUE and (quoted or word):
                builder.add_link(re.sub(r"\\(.)", r"\1", quoted) or word, text)
                return
            before = switch


def _chosen(choices: Any) -> str:
    """The chosen entry of a list in an old form; the document's text does not repeat it
    (17.16.9)."""
    entries = [one.get(W + "val", "") for one in choices.iterchildren(W + "listEntry")]
    numbers = [one.get(W + "val", "") for one in choices.iterchildren(W + "result", W + "default")]
    at = next(filter(None, numbers), "0")[:9]
    return entries[int(at)] if at.isdecimal() and int(at) < len(entries) else ""


def _symbol(element: Any) -> str:
    """A letter by its number in Unicode, or of the font Symbol; a space for a picture of such a
    font."""
    try:
        number = int(element.get(W + "char", ""), 16)
    except ValueError:
        return " "
    plain = 0x20 < number < 0xD800 or 0xF900 <= number <= 0xFFFD
    if plain and not _SYMBOL_FONTS.search(element.get(W + "font", "")):
        return chr(number)
    if element.get(W + "font", "").lower() == "symbol":
        return _GREEK.get(number & 0xFF, " ")
    return " "
