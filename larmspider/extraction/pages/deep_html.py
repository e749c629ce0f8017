"""A second HTML parser, for markup nested so deep that lexbor turns quadratic.

For ``<div>`` 100,000 times, lxml's parser reports start and end tags as they come and builds no
tree (its tree drops elements deeper than 2,048). Links and text arrive in linear time: 0.1 s, where
lexbor takes 27 s. lxml knows less of HTML (no repair of misnested formatting, no svg), so html.py
comes first. On ordinary pages both give equal results (a test), except for sections, which this
parser does not find.
"""

from __future__ import annotations

from collections import Counter

from lxml import etree

from larmspider.extraction.pages.page_builder import (
    BLOCKS,
    BREAKS,
    END,
    HIDDEN,
    MAX_ANCHOR,
    REGIONS,
    SHADOW_ROOT,
    UNSEEN,
    Attributes,
    PageBuilder,
    has_texinfo_header,
    is_permalink,
    landmark,
)

_CHUNK_BYTES = 65_536
MAX_LOOK_UPS = 2_000_000_000
"""Names compared for end tags that close nothing, each with all open elements: about 2 s. The rest
of the document is not read."""


def read(markup: bytes) -> PageBuilder:
    """Read ``markup`` (UTF-8); linear in time and memory whatever its nesting."""
    target = _Target(texinfo=has_texinfo_header(markup))
    # A NUL ends a string in C; lexbor leaves it out.
    markup = markup.replace(b"\0", b"")
    try:
        parser = etree.HTMLParser(target=target, huge_tree=True, encoding="utf-8")
        look_ups = 0
        for start in range(0, len(markup), _CHUNK_BYTES):
            chunk = markup[start : start + _CHUNK_BYTES]
            ended = target.ended
            parser.feed(chunk)
            futile = chunk.count(b"</") - (target.ended - ended)
            look_ups += max(0, futile) * target.depth
            if look_ups > MAX_LOOK_UPS:
                break
        parser.close()
    except (etree.LxmlError, ValueError, AssertionError):
        pass  # an empty document; the content until here counts
    target.close()
    return target.builder


class _Target:
    """Receives lxml's events; names are in lower case."""

    def __init__(self, *, texinfo: bool) -> None:
        self.builder = PageBuilder()
        self._texinfo = texinfo
        self.depth = self.ended = 0
        self._template = self._svg = 0
        self._noscript = False
        self._hidden: str | None = None
        self._title: list[str] | None = None
        self._anchor: _Anchor | None = None
        self._regions: Counter[str] = Counter()
        self._heading: int | None = None
        self._marked: list[int] = []  # the depths of elements that are a region by an attribute

    def start(self, name: str, attributes: Attributes) -> None:
        self.depth += 1
        if self._hidden == "template":
            self._template += name == "template"
            return
        if self._hidden is not None:
            return
        if name in BLOCKS or name in BREAKS:
            self.data(" ")
        elif name in REGIONS:
            self.data(REGIONS[name])
            self._regions[name] += 1
        if name == "h1" and self._heading is None:
            self._heading = len(self.builder.pieces)
        if name in HIDDEN:
            self._hidden = name
            self._template = 1
            if name == "template" and not SHADOW_ROOT.isdisjoint(attributes):
                self.builder.has_shadow_root = True
            if name == "title" and not self._svg and self.builder.title is None:
                self._title = []
        elif name not in ("html", "body"):
            kind = None if name in REGIONS else landmark(attributes, texinfo=self._texinfo)
            if kind := UNSEEN if _hides(attributes) else kind:
                self.builder.pieces.append(kind)
                self._marked.append(self.depth)
        self._svg += name == "svg"
        self._noscript |= name == "noscript"
        self._find(name, attributes)

    def _find(self, name: str, attributes: Attributes) -> None:
        builder = self.builder
        if name == "a":
            if self._anchor is not None:
                self._end_anchor(self._anchor)
            if "href" in attributes or "xlink:href" in attributes:
                self._anchor = _Anchor(attributes, len(builder.links))
                builder.links.append(("", 0, "", False))
        elif name == "img":
            if self._anchor is not None:
                self._anchor.alts.append(attributes.get("alt") or "")
        elif name == "link":
            builder.link(attributes)
        elif name == "meta":
            builder.meta(attributes, self._noscript)
        elif name == "area":
            builder.area(attributes)
        elif name in ("frame", "iframe"):
            hides = _hides(attributes)
            builder.pieces += [UNSEEN] * hides
            builder.frame(attributes)
            builder.pieces += [END] * hides
        elif name == "object":
            builder.embed("data", attributes)
        elif name == "embed":
            builder.embed("src", attributes)
        elif name == "base":
            if builder.base is None:
                builder.base = attributes.get("href")
        elif name == "html":
            builder.html(attributes)

    def end(self, name: str) -> None:
        if self._marked and self._marked[-1] == self.depth:
            self._marked.pop()
            self.builder.pieces.append(END)
        self.depth -= 1
        self.ended += 1
        if self._hidden is not None:
            if name == self._hidden:
                self._template -= name == "template"
                if name != "template" or not self._template:
                    self._hidden = None
                if name == "title" and self._title is not None:
                    self.builder.title = "".join(self._title)
                    self._title = None
            return
        self._svg -= name == "svg" and self._svg > 0
        if name == "noscript":
            self._noscript = False
        if name == "a" and self._anchor is not None:
            self._end_anchor(self._anchor)
        elif name in BLOCKS:
            self.data(" ")
        elif self._regions[name]:
            self._regions[name] -= 1
            self.data(END)
        if name == "h1" and self._heading is not None and not self.builder.heading:
            self.builder.heading = "".join(self.builder.pieces[self._heading :])

    def data(self, text: str) -> None:
        if self._hidden is None:
            self.builder.pieces.append(text)
            if self._anchor is not None:
                self._anchor.add(text)
        elif self._title is not None:
            self._title.append(text)

    def _end_anchor(self, anchor: _Anchor) -> None:
        links, pieces, text = self.builder.links, self.builder.pieces, anchor.text()
        if pieces and pieces[-1] == text and is_permalink(anchor.attributes, text):
            pieces.pop()
        self.builder.anchor(anchor.attributes, text)
        links[anchor.index] = links.pop()
        self._anchor = None

    def close(self) -> None:
        if self._anchor is not None:
            self._end_anchor(self._anchor)
        if self._title is not None:
            self.builder.title = "".join(self._title)


def _hides(attributes: Attributes) -> bool:
    style = attributes.get("style") or ""
    return "hidden" in attributes or "display:none" in style or "display: none" in style


class _Anchor:
    """An open ``a`` and its position among the links."""

    def __init__(self, attributes: Attributes, index: int) -> None:
        self.attributes = dict(attributes)
        self.index = index
        self.alts: list[str] = []
        self._pieces: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        if self._length <= MAX_ANCHOR * 4:
            self._pieces.append(text)
            self._length += len(text)

    def text(self) -> str:
        text = "".join(self._pieces)
        return " ".join(self.alts) if not text or text.isspace() else text
