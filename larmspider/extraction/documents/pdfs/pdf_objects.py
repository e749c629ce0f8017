"""Forms, notes, actions and files of a PDF, by qpdf (``pikepdf``), as PDFium lacks some of them.

    with opened(body) as document:
        found = notes_of(document, 20, body)          # of the first 20 pages
        found.pages[0]                                # ["Miller", "to be checked"]
        found.targets                                 # ["http://h/next.html"]

The reader takes values of form fields (ISO 32000-1 12.7; of choices the displayed value, of
signatures name, reason and place), captions of push buttons, the XFA data of forms and the labels
of forms that are only XFA; contents of annotations (12.5); targets of actions and of the actions
behind them by /Next (12.6), of annotations, pages, the outline or the document; embedded files,
named by the document, a page or an annotation (7.11). Passwords that are typed into fields,
scripts, and files embedded in films and 3D are left out.
"""

from __future__ import annotations

import base64
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from typing import IO, Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream, String

from larmspider.extraction.documents.parts import Budget, Member, Spent, or_why
from larmspider.extraction.documents.reading import Unread, date_of, local_name, parse_xml
from larmspider.items import Outcome

MAX_OBJECTS = 100_000
"""Annotations, fields and entries of the outline that are looked at."""
_PIECE, _MAX_CHECKED = 1 << 16, 1 << 24
"""Bytes of a stream that are unpacked in a piece, and in all, to see whether it is damaged."""
_DEEP = 32
"""Parents of a field."""
_PUSH_BUTTON, _PASSWORD = 1 << 16, 1 << 13
_HOLDS_FILES = re.compile(rb"/EF\b|/ObjStm\b")
"""A body that has neither has no embedded file; to walk all pages takes a tenth of reading them."""
_LEADS_OUT = re.compile(rb"/S\s*+/(?:URI|GoToR|GoToE|Launch)\b")
_FONT_FILES = ("/FontFile", "/FontFile2", "/FontFile3")
_REBUILT = "reconstruct cross-reference table"
_DIRECT = (0, 0)
"""The number of objects that stand within others."""
_FILE_NAMES = ("/UF", "/F", "/Unix", "/Mac", "/DOS")
_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml\b[^>]{0,200}\?>")
_XMP = "{http://ns.adobe.com/xap/1.0/}"
_RICH_TEXTS = ("text", "exData")
_DAMAGES = (pikepdf.PdfError, RuntimeError, ValueError, TypeError, KeyError, IndexError)
"""Errors of pikepdf for damaged objects."""


@contextmanager
def opened(body: bytes) -> Iterator[pikepdf.Pdf]:
    """Raises Unread."""
    try:
        with pikepdf.open(io.BytesIO(body), suppress_warnings=True) as document:
            yield document
    except pikepdf.PasswordError:
        raise Unread(Outcome.ENCRYPTED, "needs a password") from None
    except (pikepdf.PdfError, RuntimeError) as error:
        raise Unread(Outcome.DAMAGED, f"its objects cannot be read: {error}"[:500]) from None


def has_more_links(body: bytes, known: int) -> bool:
    """Whether ``body`` has more actions that lead out of it than ``known``, or may have."""
    return b"/ObjStm" in body or sum(1 for _ in _LEADS_OUT.finditer(body)) > known


class Notes:
    """``pages``: texts by the number of their page; ``targets``: of actions, relative to ``base``
    if there is one (12.6.4.7)."""

    def __init__(self) -> None:
        self.pages: dict[int, list[str]] = {}
        self.targets: dict[str, None] = {}
        self.base = ""
        self.unread = ""
        self.mended = b""
        self.title = self.author = ""
        """From the XMP metadata (14.3.2); PDF 2.0 has no other title."""
        self.modified: float | None = None
        self._left = MAX_OBJECTS

    def add(self, page: int, text: str) -> None:
        if text and not text.isspace():
            self.pages.setdefault(page, []).append(text)

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Spent(Outcome.TOO_LONG, f"has more than {MAX_OBJECTS:,} annotations and fields")


@contextmanager
def _damage_left_out(notes: Notes) -> Iterator[None]:
    """A damaged object costs no other one."""
    try:
        yield
    except Spent:
        raise
    except Unread as unread:
        if unread.outcome is not Outcome.DAMAGED:
            notes.unread = notes.unread or unread.unread
    except _DAMAGES:
        pass


def notes_of(
    document: pikepdf.Pdf, most_pages: int, body: bytes, *, outline_acts: bool = True
) -> Notes:
    """The notes of a document with the content ``body``. ``outline_acts``: whether its outline has
    actions. Notes found before a damaged place are kept."""
    notes, budget = Notes(), Budget(len(body))
    root = document.Root
    steps: tuple[Callable[[], None], ...] = (
        lambda: _pages(document, most_pages, notes, budget),
        lambda: _whole(document, most_pages),
        lambda: _mend(document, notes),
        lambda: _fields(root, notes, budget),
        lambda: _file_names(document, notes) if _HOLDS_FILES.search(body) else None,
        lambda: _outline(root, notes) if outline_acts else None,
        lambda: _actions((root.get("/OpenAction"), *_additional(root)), notes),
        lambda: _xfa(root, notes, budget),
        lambda: _base(root, notes),
        lambda: _metadata(root, notes, budget),
    )
    for step in steps:
        try:
            step()
        except Unread as unread:
            notes.unread = notes.unread or unread.unread
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S112 - damage costs only the rest of this step
            continue
    return notes


def _pages(document: pikepdf.Pdf, most: int, notes: Notes, budget: Budget) -> None:
    for number, page in enumerate(document.pages):
        if number >= most:
            break
        with _damage_left_out(notes):
            _actions(_additional(page.obj), notes)
        for annotation in _dictionaries(page.obj.get("/Annots")):
            notes.count()
            with _damage_left_out(notes):
                _annotation(annotation, number, notes, budget)


def _whole(document: pikepdf.Pdf, most: int) -> None:
    """Raises Unread if what a page draws, or its fonts need for their letters, cannot be unpacked:
    PDFium then reads less, or other letters, and does not say so."""
    known: dict[tuple[int, int], bool] = {}
    bad = number = 0
    for number, page in enumerate(document.pages, 1):
        if number > most:
            break
        with suppress(*_DAMAGES):
            bad += not all(_is_whole(one, known) for one in _of_page(page))
    if bad:
        raise Unread(Outcome.DAMAGED, f"the text of {bad:,} of {number:,} pages is damaged")


def _mend(document: pikepdf.Pdf, notes: Notes) -> None:
    """Keep a copy with a new table of objects, if the table does not lead to the objects. PDFium
    reads a damaged table as far as it goes."""
    if any(_REBUILT in str(warning) for warning in document.get_warnings()):
        out = io.BytesIO()
        document.save(out)
        notes.mended = out.getvalue()


def _of_page(page: Any) -> Iterator[Any]:
    """Streams with the text of a page, and the letters of its fonts (9.10.3)."""
    content = page.obj.get("/Contents")
    yield from content if isinstance(content, Array) else (content,)
    resources = page.obj.get("/Resources")
    fonts = resources.get("/Font") if isinstance(resources, Dictionary) else None
    for font in fonts.as_dict().values() if isinstance(fonts, Dictionary) else ():
        if isinstance(font, Dictionary):
            yield font.get("/ToUnicode")
            for one in (font, *_dictionaries(font.get("/DescendantFonts"))):
                if isinstance(described := one.get("/FontDescriptor"), Dictionary):
                    yield from map(described.get, _FONT_FILES)


def _is_whole(stream: Any, known: dict[tuple[int, int], bool]) -> bool:
    if not isinstance(stream, Stream) or stream.get("/Filter") != Name.FlateDecode:
        return True
    if (number := stream.objgen) not in known:
        known[number] = _inflates(stream.read_raw_bytes())
    return known[number]


def _inflates(data: bytes) -> bool:
    inflater, left = zlib.decompressobj(), _MAX_CHECKED
    try:
        while data and not inflater.eof and left > 0:
            left -= len(inflater.decompress(data, _PIECE))
            data = inflater.unconsumed_tail
    except zlib.error:
        return False
    return inflater.eof or left <= 0


def _annotation(annotation: Any, number: int, notes: Notes, budget: Budget) -> None:
    _actions((annotation.get("/A"), *_additional(annotation)), notes)
    kind = annotation.get("/Subtype")
    if kind == Name.Popup:  # shows what its parent has
        return
    text = _text(annotation.get("/Contents"), budget)
    notes.add(number, text or _rich(annotation.get("/RC"), budget))
    if kind == Name.Widget:
        for text in _values(annotation, budget):
            notes.add(number, text)


def _values(field: Any, budget: Budget) -> Iterator[str]:
    """The values of a field, as it shows them."""
    kind, value = _inherited(field, "/FT"), _inherited(field, "/V")
    flags = _inherited(field, "/Ff")
    flags = flags if isinstance(flags, int) else 0
    options = _inherited(field, "/Opt")
    options = options if isinstance(options, Array) else ()
    if kind == Name.Btn:
        if flags & _PUSH_BUTTON:
            look = field.get("/MK")
            yield _text(look.get("/CA"), budget) if isinstance(look, Dictionary) else ""
        elif isinstance(value, Name) and value != Name.Off:
            state = str(value)[1:]
            at = int(state) if state.isdecimal() and len(state) < 6 else -1
            yield _text(options[at], budget) if 0 <= at < len(options) else state
    elif kind == Name.Ch:
        shown = {
            _text(one[0], budget): _text(one[1], budget)
            for one in options
            if isinstance(one, Array) and len(one) == 2
        }
        for one in value if isinstance(value, Array) else (value,):
            text = _text(one, budget)
            yield shown.get(text, text)
    elif kind == Name.Sig:
        if isinstance(value, Dictionary):
            for name in ("/Name", "/Reason", "/Location"):
                yield _text(value.get(name), budget)
    elif not flags & _PASSWORD:
        yield _text(value, budget) or _rich(_inherited(field, "/RV"), budget)


def _inherited(field: Any, name: str) -> Any:
    for _ in range(_DEEP):
        if (value := field.get(name)) is not None:
            return value
        if not isinstance(field := field.get("/Parent"), Dictionary):
            break
    return None


def _fields(root: Any, notes: Notes, budget: Budget) -> None:
    """Values of fields that no page shows: the first page has them."""
    form = root.get("/AcroForm")
    if not isinstance(form, Dictionary):
        return
    shown = {text for texts in notes.pages.values() for text in texts}
    for field in _tree(form.get("/Fields"), ("/Kids",), notes):
        with _damage_left_out(notes):
            for text in _values(field, budget) if field.get("/V") is not None else ():
                if text not in shown:
                    shown.add(text)
                    notes.add(0, text)


def _file_names(document: pikepdf.Pdf, notes: Notes) -> None:
    for number, name, _ in _embedded(document):
        notes.add(number, name)


def _outline(root: Any, notes: Notes) -> None:
    """Actions of its entries; PDFium has the titles."""
    for entry in _tree(root.get("/Outlines"), ("/Next", "/First"), notes):
        if (action := entry.get("/A")) is not None:
            with _damage_left_out(notes):
                _actions((action,), notes)


def _actions(first: Iterable[Any], notes: Notes) -> None:
    """Targets of actions and of the actions behind them."""
    for action in chain.from_iterable(_tree(one, ("/Next",), notes) for one in first):
        kind = action.get("/S")
        if kind == Name.URI and isinstance(uri := action.get("/URI"), String):
            notes.targets[bytes(uri).decode("utf-8", "replace")] = None
        elif kind in (Name.GoToR, Name.Launch, Name.GoToE):
            file = action.get("/F")
            notes.targets[_file_name(file) if isinstance(file, Dictionary) else _text(file)] = None


def _base(root: Any, notes: Notes) -> None:
    if isinstance(uri := root.get("/URI"), Dictionary):
        notes.base = _text(uri.get("/Base"))


def _metadata(root: Any, notes: Notes, budget: Budget) -> None:
    if not isinstance(stream := root.get("/Metadata"), Stream):
        return
    tree = parse_xml(content(stream, budget))
    notes.title = next(_listed(tree, "title"), "")
    notes.author = "; ".join(_listed(tree, "creator"))
    for name in ("ModifyDate", "CreateDate"):
        values = (one.get(f"{_XMP}{name}") or one.findtext(f"{_XMP}{name}") for one in tree.iter())
        if notes.modified is None:
            notes.modified = date_of(next(filter(None, values), ""))


def _listed(tree: Any, name: str) -> Iterator[str]:
    """The values of a property of Dublin Core; of a title in several languages the first."""
    for element in tree.iter(f"{{http://purl.org/dc/elements/1.1/}}{name}"):
        yield from (text for one in element.itertext() if (text := " ".join(one.split())))


def _additional(holder: Any) -> Iterator[Any]:
    actions = holder.get("/AA")
    return iter(actions.as_dict().values() if isinstance(actions, Dictionary) else ())


def _xfa(root: Any, notes: Notes, budget: Budget) -> None:
    form = root.get("/AcroForm")
    packets = form.get("/XFA") if isinstance(form, Dictionary) else None
    streams = packets if isinstance(packets, Array) else (packets,)
    data = b"".join(content(one, budget) for one in streams if isinstance(one, Stream))
    if not data:
        return
    tree = parse_xml(b"<xfa>%b</xfa>" % _DECLARATION.sub(b"", data))  # none may be around them
    shown = {text for texts in notes.pages.values() for text in texts}
    found = [one for sets in tree.iter("{*}datasets") for one in sets.iter("{*}*") if not len(one)]
    if not form.get("/Fields"):
        labels = (one for name in ("draw", "caption") for one in tree.iter("{*}" + name))
        found += (one for label in labels for one in label.iter() if local_name(one) in _RICH_TEXTS)
    for element in found:
        text = " ".join("".join(element.itertext()).split())
        if text not in shown:
            shown.add(text)
            notes.add(0, text)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    """The embedded files of a PDF. Raises Spent."""
    if not _HOLDS_FILES.search(body):
        return
    with ExitStack() as stack:
        try:
            document = stack.enter_context(opened(body))
        except Unread:  # pdf.extract has said whether it is damaged
            return
        for _, own, stream in _embedded(document):
            kind = stream.get("/Subtype")
            said = str(kind)[1:] if isinstance(kind, Name) else ""
            yield Member(own, or_why(partial(content, stream, budget)), said)


def _embedded(document: pikepdf.Pdf) -> Iterator[tuple[int, str, Any]]:
    """Streams of files, each once, with their page's number, 0 without one, and their name."""
    seen, notes = set(), Notes()
    for number, name, file in _named(document, notes):
        if isinstance(file, Dictionary) and (stream := _stream_of(file)) is not None:
            notes.count()
            if stream.objgen not in seen:
                seen.add(stream.objgen)
                yield number, _file_name(file) or name, stream


def _named(document: pikepdf.Pdf, notes: Notes) -> Iterator[tuple[int, str, Any]]:
    with suppress(*_DAMAGES):
        names = document.Root.get("/Names")
        top = names.get("/EmbeddedFiles") if isinstance(names, Dictionary) else None
        for node in _tree(top, ("/Kids",), notes):
            listed = node.get("/Names")
            if isinstance(listed, Array):
                for at in range(1, len(listed), 2):
                    yield 0, _text(listed[at - 1]), listed[at]
        for file in _dictionaries(document.Root.get("/AF")):
            yield 0, "", file
    with suppress(*_DAMAGES):
        for number, page in enumerate(document.pages):
            for file in _dictionaries(page.obj.get("/AF")):
                yield number, "", file
            for annotation in _dictionaries(page.obj.get("/Annots")):
                notes.count()
                if (file := annotation.get("/FS")) is not None:
                    yield number, "", file
                for file in _dictionaries(annotation.get("/AF")):
                    yield number, "", file


def _tree(top: Any, children: tuple[str, ...], notes: Notes) -> Iterator[Any]:
    """The dictionaries of a tree, each once, in their order."""
    waiting, seen = [top], set()
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Array | Dictionary) or (number := node.objgen) in seen:
            continue
        notes.count()
        if number != _DIRECT:
            seen.add(number)
        if isinstance(node, Array):
            waiting.extend(reversed(list(node)))
        else:
            yield node
            waiting.extend(child for name in children if (child := node.get(name)) is not None)


def _dictionaries(values: Any) -> Iterator[Any]:
    if isinstance(values, Array):
        for value in values:
            if isinstance(value, Dictionary):
                yield value


def _stream_of(file: Any) -> Any:
    files = file.get("/EF")
    if isinstance(files, Dictionary):
        for name in _FILE_NAMES:
            if isinstance(stream := files.get(name), Stream):
                return stream
    return None


def _file_name(file: Any) -> str:
    return next((name for key in _FILE_NAMES if (name := _text(file.get(key)))), "")


def _text(value: Any, budget: Budget | None = None) -> str:
    """A text string or text stream (7.9.2, 7.9.3)."""
    if isinstance(value, String):
        return str(value)
    if budget is not None and isinstance(value, Stream):
        return str(String(content(value, budget)))
    return ""


def _rich(value: Any, budget: Budget) -> str:
    text = _text(value, budget)
    return " ".join(parse_xml(text.encode()).itertext()) if text.strip() else ""


def content(stream: Any, budget: Budget) -> bytes:
    """The unpacked bytes of a stream, within ``budget``. Raises Unread."""
    try:
        return budget.read(_unpacking(stream, budget))
    except (pikepdf.PdfError, ValueError) as error:
        raise Unread(Outcome.DAMAGED, f"it cannot be unpacked: {error}"[:500]) from None


def _unpacking(stream: Any, budget: Budget) -> Any:
    filters = stream.get("/Filter")
    file: Any = io.BytesIO(stream.read_raw_bytes())
    for one in filters if isinstance(filters, Array) else () if filters is None else (filters,):
        if one in (Name.FlateDecode, Name("/Fl")):
            file = _Inflated(file)
        elif one in (Name.ASCII85Decode, Name("/A85")):
            file = io.BytesIO(_of_ascii85(budget.read(file, counted=True)))
        elif one in (Name.ASCIIHexDecode, Name("/AHx")):
            file = io.BytesIO(_of_hex(budget.read(file, counted=True)))
        elif one != Name.Crypt:
            raise Unread(Outcome.NO_READER, f"it is packed by {str(one)[1:]}")
    return file


def _of_ascii85(data: bytes) -> bytes:
    data = data.strip().removeprefix(b"<~").partition(b"~")[0]
    return base64.a85decode(data, ignorechars=b" \t\n\r\v\f\0")


def _of_hex(data: bytes) -> bytes:
    digits = b"".join(data.partition(b">")[0].split())
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("latin-1"))


class _Inflated(io.RawIOBase):
    """A file of zlib's that is unpacked as it is read."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed, self._inflater = packed, zlib.decompressobj()

    def read(self, size: int = -1) -> bytes:
        data = b""
        while not data and not self._inflater.eof:
            packed = self._inflater.unconsumed_tail or self._packed.read(size)
            data = self._inflater.decompress(packed, size)
            if not packed and not data:
                raise EOFError("it is cut off")
        return data
