"""HTML: one lexbor parse and one walk over its tree give links, title, text and metadata.

::

    page = extract(b"<title>Wiki</title>See <a href=/help>help</a>", "http://wiki.example/", None)
    page.title, page.text           # ("Wiki", "See help")
    page.links[0].url               # "http://wiki.example/help"

Measured with ``python -m benchmarks.extraction`` (530 pages of Python's documentation, 93 KB and
312 links on average): 1.5 ms of CPU a page in the median, 3.2 in the mean, 1.4 for 40 KB.
One walk over every node beats a CSS query for the links and a call for the text, which walk the
tree as well. Only the walk can separate words: "ab" is one word in ``<b>a</b>b`` and two in
``<p>a</p>b``.

Links inside ``template`` are absent, unless it is a declarative shadow root. Links inside
``noscript`` are present, and so are text and links of an iframe's ``srcdoc``. A page whose markup
would make lexbor slow or fat (markup_guard.py) is read by deep_html.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, create_tag

from larmspider.extraction.pages import deep_html
from larmspider.extraction.pages.markup_guard import MAX_TAGS, Screen, is_costly
from larmspider.extraction.pages.note_numbers import (
    LONGEST,
    is_note_before,
    is_note_behind,
    is_note_link,
    leads_to_place,
)
from larmspider.extraction.pages.page_builder import (
    ASIDE,
    BEGINNING,
    BLOCKS,
    BREAKS,
    CONTENTS,
    END,
    HIDDEN,
    LANDMARKS,
    LEAST_LINKS,
    LINK_SHARE,
    LONG_BEGINNING,
    MAX_ANCHOR,
    MAX_LINKS,
    NAVIGATION,
    REGIONS,
    SHADOW_ROOT,
    SIDE_BAR,
    TEXINFO,
    TOC,
    UNSEEN,
    Attributes,
    LinkColumns,
    PageBuilder,
    has_texinfo_header,
    is_permalink,
    landmark,
)
from larmspider.extraction.texts.charset import to_utf8
from larmspider.items import Page

_HIDING = (b" hidden", b"display:none", b"display: none")
_HIDING_LOOKED_AT, _LONG_TAG = 32, 500
_ROLE = re.compile(rb"role=[\"']?(?:%s)\b" % b"|".join(name.encode() for name in LANDMARKS))
_CLASS = 'class="(?:%s)[" ]'
_HAS_CLASS = re.compile((_CLASS % "|".join(sorted(NAVIGATION))).encode())
_HAS_TOC = re.compile((_CLASS % "|".join(sorted(TOC))).encode())
_MAY_HAVE_CLASS = Screen((_CLASS % "|".join(sorted(NAVIGATION | TOC))).encode())
_TEXINFO = ", ".join(f"body .{name}" for name in sorted(TEXINFO))
_CLASSES = ", ".join(f"body .{name}" for name in sorted(NAVIGATION))
_TOCS = ", ".join(f"body .{name}" for name in sorted(TOC))
_SIDE_BAR_PARTS = (
    (b"side", (b"sidebar", b"side-", b"sidenav")),
    (b"menu", (b"menu",)),
    (b"nav", (b'nav"', b"nav-", b"navbar")),
)
"""Parts of names, by how they begin: most pages have few places with these beginnings."""
_MAY_HAVE_SIDE_BAR = Screen(rb"(?:sidebar|side-|sidenav|menu|nav-|navbar)[\w \-]*\"|nav\"")
_SIDE_BAR_TAG = re.compile(rb"<(div|ul|td)\s[^<>]{0,300}>")
_SIDE_BAR_NAME = re.compile(r"\b(class|id)=\"([\w \-]{1,100})\"")
_LONGEST_PART = 7
_SKIPPED_BYTES = 100  # after a name: the attributes of one tag
_MOST_SIDE_BARS = 10
"""Elements of a page that are looked at for side bars."""
_TAG = re.compile(rb"[A-Za-z]+")
_UNSEEN = "body [hidden], body [style*='display:none'], body [style*='display: none']"

# With mutation events lexbor is quadratic in a select: 20,000 options take 3.6 s, without 7 ms.
_OPTIONS = LexborDocumentOptions.WO_EVENTS

_ANCHOR_NODES = 512
"""Nodes read for one anchor text; svg links nest, and a whole walk for each would be quadratic."""
_ALL_ANCHOR_NODES = 200_000
"""Nodes read for all anchor texts of a page that are not of one piece: 0.05 s of CPU; the worst
page known (3,300 links open at once) takes 0.1 s. Then only texts of one piece are read."""


def _tag_id(name: str) -> int:
    return create_tag(name).tag_id


# The role of an element in the walk, by lexbor's tag id; integers, for every node is looked up.
(
    _TEXT,
    _BLOCK,
    _HEADING,
    _BREAK,
    _HIDDEN,
    _A,
    _IMG,
    _LINK,
    _META,
    _AREA,
    _FRAME,
    _IFRAME,
    _TITLE,
    _BASE,
    _HTML,
    _REGION,
    _TEMPLATE,
    _OBJECT,
    _EMBED,
    _SUP,
    _RUBY,
) = range(21)
_PARTING = frozenset((_BLOCK, _HEADING, _BREAK, _IMG, _REGION, _OBJECT, _EMBED))
_SKIPPED = frozenset((_HIDDEN, _IFRAME, _TITLE, _TEMPLATE))
_ROLES = {
    **{_tag_id(name): _BLOCK for name in BLOCKS},
    **{_tag_id(name): _HEADING for name in ("h1", "h2", "h3", "h4", "h5", "h6", "dt")},
    **{_tag_id(name): _BREAK for name in BREAKS},
    **{_tag_id(name): _HIDDEN for name in HIDDEN},
    **{_tag_id(name): _REGION for name in REGIONS},
    **{
        _tag_id(name): role
        for name, role in (
            ("a", _A),
            ("img", _IMG),
            ("link", _LINK),
            ("meta", _META),
            ("area", _AREA),
            ("frame", _FRAME),
            ("iframe", _IFRAME),
            ("title", _TITLE),
            ("base", _BASE),
            ("html", _HTML),
            ("template", _TEMPLATE),
            ("object", _OBJECT),
            ("embed", _EMBED),
            ("sup", _SUP),
            ("ruby", _RUBY),
        )
    },
}
_MARKS = {_tag_id(name): (kind, END.encode()) for name, kind in REGIONS.items()}
_DT = _tag_id("dt")
_NAMED = frozenset(map(_tag_id, ("a", "span")))
_A_ID = _tag_id("a")
_PILCROWS = " \n\xb6\u21a9\U0001f517\uf0c1"
_SIGNS = "#\xa7"
"""Signs with which headings link to themselves; they may also be part of the heading's text."""
_ABOVE = 4
"""Ancestors of a heading that may have its name."""
_INLINE_AROUND, _PIECES_BEFORE = 8, 3
_SRCDOC_DEPTH = 3
"""Nested frames whose markup is read."""
_SRCDOC_TAGS = 10
"""Tags whose time the parser takes for any markup: 0.05 ms."""
_SHADOW_ROOT = re.compile(
    rb"[\s/\"']shadowroot(?:mode)?\s*=\s*[\"']?(?:open|closed)\b", re.IGNORECASE
)
_TEMPLATE_TAG = re.compile(rb"<(/?)template(?=[\s/>])([^>]*)", re.IGNORECASE)
_TEXT_ID = 2
_ROLES[_TEXT_ID] = _TEXT


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """The Page that ``body``, fetched from ``url``, makes; never raises, whatever the bytes.

    ``content_type`` is the value of the HTTP header, for its charset. The limits are the MAX_
    constants of page_builder.py.
    """
    page, builder = _begun(body, url, content_type)
    builder.fill(page)
    return page


def extract_columns(body: bytes, url: str, content_type: str | None) -> tuple[Page, LinkColumns]:
    """`extract` for another process: the links are columns (process_child.py)."""
    page, builder = _begun(body, url, content_type)
    return page, builder.fill_but_links(page)


def _begun(body: bytes, url: str, content_type: str | None) -> tuple[Page, PageBuilder]:
    return begun(*to_utf8(body, content_type), body, url)


def begun(markup: bytes, charset: str, body: bytes, url: str) -> tuple[Page, PageBuilder]:
    """The Page of ``body``, without the builder's fields, and the builder after reading
    ``markup``, which is ``body`` in UTF-8."""
    page = Page(url, body=body, charset=charset)
    return page, _read_all(markup, [MAX_TAGS])


def _read_all(markup: bytes, left: list[int], depth: int = 0) -> PageBuilder:
    """Read a page with the frames whose markup is in it; ``left`` tags of these are read."""
    builder = _read_one(markup)
    if builder.has_shadow_root and (shown := _with_shadow_roots(markup)) != markup:
        builder = _read_one(shown)
    for place, text in builder.srcdocs if depth < _SRCDOC_DEPTH else ():
        inner = text.encode("utf-8", "replace")
        left[0] -= _SRCDOC_TAGS + inner.count(b"<")
        if left[0] < 0:
            break
        builder.show(place, _read_all(inner, left, depth + 1))
    return builder


def _read_one(markup: bytes) -> PageBuilder:
    return deep_html.read(markup) if is_costly(markup) else read(markup)


def _with_shadow_roots(markup: bytes) -> bytes:
    """``markup`` with a div for each template that is a declarative shadow root (HTML 4.12.3): its
    content is shown."""
    pieces: list[bytes] = []
    opened: list[bool] = []
    end = 0
    for tag in _TEMPLATE_TAG.finditer(markup):
        if not tag[1]:
            opened.append(_SHADOW_ROOT.search(tag[2]) is not None)
        if opened[-1:] == [True]:
            pieces += markup[end : tag.start()], b"<", tag[1], b"div", tag[2]
            end = tag.end()
        if tag[1] and opened:
            opened.pop()
    return b"".join(pieces) + markup[end:]


def read(markup: bytes) -> PageBuilder:
    """Parse and walk ``markup`` (UTF-8); time and memory are bounded unless it is_costly."""
    builder = PageBuilder()
    parser = LexborHTMLParser(markup, options=_OPTIONS)
    root = parser.root
    if root is not None:
        if _may_hide(markup):
            for node in parser.css(_UNSEEN):
                node.insert_before(UNSEEN.encode())
                node.insert_after(END.encode())
        if b"</text>" in markup:  # texts of a drawing stand side by side without a space
            for node in parser.css("svg text"):
                node.insert_before(" ")
                node.insert_after(" ")
        if selector := _landmarks_in(markup):
            texinfo = _TEXINFO in selector
            for node in parser.css(selector):
                if node.tag_id in _MARKS:
                    continue
                if kind := landmark(node.attributes, texinfo=texinfo):
                    node.insert_before(kind.encode())
                    node.insert_after(END.encode())
        if selector := _side_bars_in(markup[:BEGINNING]):
            for node in _side_bars(parser, selector):
                _set_aside(node)
        _walk(root, builder)
        if not builder.title or builder.title.isspace():
            heading = parser.css_first("h1")
            builder.heading = _heading_text(heading) if heading is not None else ""
    return builder


def _side_bars_in(beginning: bytes) -> str:
    """The expression that finds elements which are navigation by class or id; "" for none."""
    nav = beginning.find(b"<nav")  # mostly the only one; to look for more takes as long as a screen
    end = beginning.find(b"</nav", nav) if nav >= 0 else -1
    if not _MAY_HAVE_SIDE_BAR.may_find(beginning[:nav] + beginning[end:] if end > 0 else beginning):
        return ""
    beginning = _outside_nav(beginning)
    found = dict[str, None]()
    for stem, parts in _SIDE_BAR_PARTS:
        first = beginning.find(stem)
        end = beginning.rfind(stem) + _LONGEST_PART if first >= 0 else 0
        for part in parts if end else ():
            at = beginning.find(part, first, end)
            while at >= 0:
                start = beginning.rfind(b"<", max(0, at - _LONG_TAG), at)
                tag = _SIDE_BAR_TAG.match(beginning, start) if start >= 0 else None
                if tag:
                    found |= dict.fromkeys(_side_bar_names(tag[0]))
                at = beginning.find(part, at + _SKIPPED_BYTES, end)
    return ", ".join(islice(found, _MOST_SIDE_BARS))


def _outside_nav(beginning: bytes) -> bytes:
    """The markup without ``nav`` elements, which are navigation by their name."""
    pieces = list[bytes]()
    end = 0
    while (start := beginning.find(b"<nav", end)) >= 0:
        pieces.append(beginning[end:start])
        end = beginning.find(b"</nav", start)
        if end < 0:
            return b"".join(pieces)
    return b"".join((*pieces, beginning[end:])) if pieces else beginning


@lru_cache(1_024)  # the pages of a site have the same tags
def _side_bar_names(tag: bytes) -> tuple[str, ...]:
    """The expressions for the names of a tag that are names of side bars."""
    name = tag[1 : tag.index(b" ")].decode() if b" " in tag else ""
    names = _SIDE_BAR_NAME.findall(tag.decode("latin-1")) if b"role=" not in tag else ()
    return tuple(f'body {name}[{key}="{value}"]' for key, value in names if SIDE_BAR.search(value))


def _side_bars(parser: LexborHTMLParser, selector: str) -> list[LexborNode]:
    """The elements with these names whose text is mostly links."""
    known = dict[int, bool]()
    found = list[LexborNode]()
    for node in islice(parser.css(selector), _MOST_SIDE_BARS):
        name = node.mem_id  # a node comes once for each of its names
        if name not in known:
            known[name] = _is_side_bar(node)
        if known[name]:
            found.append(node)
    return found


def _is_side_bar(node: LexborNode) -> bool:
    links = node.css("a[href]")
    if len(links) < LEAST_LINKS or node.css_first("main, article, h1") is not None:
        return False
    linked = sum(len(link.text()) for link in links)
    return linked >= LINK_SHARE * len("".join(node.text().split(" ")))


def _set_aside(node: LexborNode) -> None:
    """Mark an element as navigation; a list in it of places of the page is its table of
    contents."""
    for inner in node.css("ul, ol, dl"):
        hrefs = [link.attributes.get("href") or "" for link in inner.css("a[href]")]
        if len(hrefs) >= LEAST_LINKS and all(href.startswith("#") for href in hrefs):
            inner.insert_before((END + CONTENTS).encode())
            inner.insert_after((END + ASIDE).encode())
            break
    node.insert_before(ASIDE.encode())
    node.insert_after(END.encode())


def _may_hide(markup: bytes) -> bool:
    """Whether one of the first tags with a word of `_HIDING` may hide its element. This check saves
    a query of the tree, which takes a tenth of a page's time."""
    for word in _HIDING if b"display:" in markup else _HIDING[:1]:
        at = markup.find(word)
        for _ in range(_HIDING_LOOKED_AT):
            if at < 0:
                break
            tag = markup.rfind(b"<", max(0, at - _LONG_TAG), at)
            if tag >= 0 and markup.find(b">", tag, at) < 0:  # not in a style sheet or a script
                return True
            at = markup.find(word, at + 1)
    return False


def _landmarks_in(markup: bytes) -> str:
    """The expression that finds elements which are regions by role or class, not by their name; ""
    for a page that does not begin with such an element."""
    beginning = markup[:BEGINNING]
    found = [_TEXINFO] if has_texinfo_header(beginning) else []
    if _MAY_HAVE_CLASS.may_find(beginning):
        if _HAS_CLASS.search(beginning):
            found.append(_CLASSES)
        if _HAS_TOC.search(beginning):
            found.append(_TOCS)
    end = BEGINNING
    at = markup.find(b"role=", 0, end)  # an expression takes longer
    while at >= 0:
        if _ROLE.match(markup, at):
            tag = _TAG.match(markup, markup.rfind(b"<", 0, at) + 1)
            if tag and tag[0].lower().decode() not in REGIONS:
                found.append("body [role]")
                break
            end = LONG_BEGINNING
        at = markup.find(b"role=", at + 1, end)
    return ", ".join(found)


def _walk(root: LexborNode, builder: PageBuilder) -> None:
    role_of = _ROLES.get
    add, anchor, links = builder.pieces.append, builder.anchor, builder.links
    nodes = _ALL_ANCHOR_NODES
    walk = root.traverse(include_text=True)
    for node in walk:
        text = node.text_content
        if text is not None:  # six of ten nodes
            add(text)
            continue
        role = role_of(node.tag_id)
        if role is None:  # inline element, comment
            continue
        if role <= _HEADING:
            add(" ")
            if role == _HEADING and ((name := _section_of(node)) or node.tag_id != _DT):
                builder.section(name, _only_text(node) or _heading_text(node))
            # The walk shows where an element begins, not where it ends. The space after its text
            # is put into the tree, where the walk meets it. Most blocks end at another block or at
            # white space: to find that out costs a third of a space.
            following = node.next
            if following is None:
                parted = _ends_block(node)
            elif (text := following.text_content) is not None:
                parted = text[:1].isspace()
            else:
                parted = role_of(following.tag_id) in _PARTING
            if not parted:
                node.insert_after(b" ")
        elif role == _A:
            if len(links) < MAX_LINKS:
                attributes = node.attributes
                if "href" in attributes or "xlink:href" in attributes:
                    only = node.first_child
                    if only is not None and only.next is None:
                        text = only.text_content
                        if text is not None:  # seven of ten
                            anchor(attributes, text)
                            if len(text) > 3:
                                add(text)
                            elif not is_permalink(attributes, text):
                                _add_short(node, attributes, text, builder.pieces)
                            next(walk)  # the text
                            continue
                    text = _only_text(node)
                    if text is None:
                        text, looked_at = _anchor_text(node, min(_ANCHOR_NODES, nodes))
                        nodes -= looked_at
                    elif len(text) <= 3:
                        if is_permalink(attributes, text):
                            _skip(node, walk)
                        elif is_note_link(attributes, text):
                            pieces = builder.pieces
                            if pieces and pieces[-1][-1:].isalnum():
                                add(" ")
                            if is_note_before(_text_behind(node)):
                                node.insert_after(b" ")
                    anchor(attributes, text)
        elif role in (_BREAK, _IMG):
            add(" ")
        elif role == _SUP:
            _part_note(node, builder.pieces)
        elif role == _RUBY:
            _set_reading_apart(node)
        elif role == _REGION:
            start, end = _MARKS[node.tag_id]
            add(start)
            node.insert_after(end)  # the walk will meet it
        else:
            if role >= _OBJECT:
                add(" ")
                if role == _OBJECT:
                    node.insert_after(b" ")
            if role == _TEMPLATE and not SHADOW_ROOT.isdisjoint(node.attributes):
                builder.has_shadow_root = True
            _metadata(role, node, builder)
            if role in _SKIPPED:
                _skip(node, walk)


def _part_note(raised: LexborNode, pieces: list[str]) -> None:
    """Separate the number of a note from the word before or after it."""
    text = raised.text().strip()
    if not 0 < len(text) <= LONGEST:
        return
    before = "".join(pieces[-_PIECES_BEFORE:])
    is_linked = _is_link_to_place(raised.parent) or _is_link_to_place(raised.first_child)
    if before[-1:].isalnum():
        if is_linked or (text.replace(",", "").isdecimal() and is_note_behind(before)):
            pieces.append(" ")
            raised.insert_before(b" ")  # used for the title
    elif (is_linked or text.isdecimal()) and is_note_before(_text_behind(raised)):
        raised.insert_after(b" ")


def _text_behind(node: LexborNode) -> str:
    """The text right after an element, perhaps outside of inline elements around it."""
    last: LexborNode | None = node
    for _ in range(_INLINE_AROUND):
        if last is None or last.next is not None or _ROLES.get(last.tag_id) in _PARTING:
            break
        last = last.parent
    return last.next.text_content or "" if last is not None and last.next is not None else ""


def _is_link_to_place(node: LexborNode | None) -> bool:
    return node is not None and node.tag_id == _A_ID and leads_to_place(node.attributes)


def _set_reading_apart(ruby: LexborNode) -> None:
    """Move the reading of a ruby (HTML 4.5.10) to the end of its block, so that the word stays one
    word, and so does its reading."""
    reading = []
    for node in ruby.css("rt, rp"):
        if node.tag == "rt":
            reading.append(node.text().strip())
        node.decompose()
    block = ruby.parent
    for _ in range(_INLINE_AROUND):
        if block is None or _ROLES.get(block.tag_id) in (_BLOCK, _HEADING):
            break
        block = block.parent
    else:
        block = None
    text = f" {''.join(reading)} "
    if block is None:
        ruby.insert_after(text)
    else:
        block.insert_child(text)


def _add_short(link: LexborNode, attributes: Attributes, text: str, pieces: list[str]) -> None:
    """Add the text of a link of three letters or less. The number of a note is set apart from the
    words around it."""
    pieces.append(text)
    if is_note_link(attributes, text):
        if len(pieces) > 1 and pieces[-2][-1:].isalnum():
            pieces.insert(-1, " ")
        if is_note_before(_text_behind(link)):
            link.insert_after(b" ")


def _section_of(heading: LexborNode) -> str:
    """The anchor of a heading: its own id, or the name of an ``a`` in it or right before it. Else
    the id of an element that begins with the heading, or ""."""
    if name := heading.id:
        return name
    first = heading.first_child
    if first is not None and first.tag_id == _TEXT_ID and first.text().isspace():
        first = first.next
    if first is not None and first.tag_id in _NAMED and (name := _name_of(first)):
        return name
    node = heading
    for _ in range(_ABOVE if heading.tag_id != _DT else 0):
        before = node.prev
        while before is not None and before.tag_id == _TEXT_ID and not before.text().strip():
            before = before.prev
        if before is not None:
            empty = before.tag_id in _NAMED and not before.text().strip()
            return _name_of(before) if empty else ""
        above = node.parent
        if above is None:
            break
        if name := above.id:
            return name
        node = above
    return ""


def _heading_text(heading: LexborNode) -> str:
    """The text of a heading without the sign that links to itself."""
    text: str = heading.text().strip(_PILCROWS)
    if text[-1:] in _SIGNS and _is_sign(heading.last_child, text[-1:]):
        text = text[:-1].rstrip()
    if text[:1] in _SIGNS and _is_sign(heading.first_child, text[:1]):
        text = text[1:].lstrip()
    return text


def _is_sign(node: LexborNode | None, text: str) -> bool:
    return node is not None and node.tag_id == _A_ID and node.text().strip() == text


def _name_of(node: LexborNode) -> str:
    return node.id or node.attributes.get("name") or ""


def _ends_block(last: LexborNode) -> bool:
    """Whether a block ends with ``last``, its last child."""
    parent = last.parent
    return parent is not None and _ROLES.get(parent.tag_id) in (
        _BLOCK, _HEADING, _REGION, _OBJECT,
    )  # fmt: skip


def _metadata(role: int, node: LexborNode, builder: PageBuilder) -> None:
    if role == _TITLE:
        if builder.title is None and not _is_foreign(node):
            builder.title = node.text()
        return
    attributes: Attributes = node.attributes
    if role == _META:
        parent = node.parent
        builder.meta(attributes, parent is not None and parent.tag == "noscript")
    elif role == _LINK:
        builder.link(attributes)
    elif role == _AREA:
        builder.area(attributes)
    elif role in (_FRAME, _IFRAME):
        builder.frame(attributes)
    elif role == _OBJECT:
        builder.embed("data", attributes)
    elif role == _EMBED:
        builder.embed("src", attributes)
    elif role == _BASE:
        if builder.base is None:
            builder.base = attributes.get("href")
    elif role == _HTML:
        builder.html(attributes)


def _skip(node: LexborNode, walk: Iterator[LexborNode]) -> None:
    """Move ``walk`` from ``node`` to the end of its subtree."""
    if node.first_child is not None:
        size = sum(1 for _ in node.traverse(include_text=True))
        next(islice(walk, size - 1, size - 1), None)


def _is_foreign(title: LexborNode) -> bool:
    """Whether ``title`` is a tooltip in an svg, not the page's title."""
    parent = title.parent
    while parent is not None and parent.tag != "foreignObject":
        if parent.tag == "svg":
            return True
        parent = parent.parent
    return False


def _only_text(anchor: LexborNode) -> str | None:
    """The text of an ``a`` that holds one piece of text, at most inside inline elements, as nine of
    ten do; None for the others."""
    role_of = _ROLES.get
    only = anchor.first_child
    while only is not None and only.next is None:
        if (text := only.text_content) is not None or role_of(only.tag_id) is not None:
            return text
        only = only.first_child
    return None


def _anchor_text(anchor: LexborNode, limit: int) -> tuple[str, int]:
    """The text of an ``a``, or the ALT text of its images if that is blank, and the number of nodes
    read, at most ``limit``."""
    pieces: list[str] = []
    alts: list[str] = []
    length = looked_at = 0
    walk = islice(anchor.traverse(include_text=True), 1, limit)
    for node in walk:
        looked_at += 1
        role = _ROLES.get(node.tag_id)
        if role == _TEXT:
            piece = node.text_content or ""
            pieces.append(piece)
            length += len(piece)
            if length > MAX_ANCHOR * 4:
                break
        elif role in (_BLOCK, _HEADING, _REGION, _OBJECT):
            pieces.append(" ")
            node.insert_after(b" ")
        elif role == _IMG:
            pieces.append(" ")
            alts.append(node.attributes.get("alt") or "")
        elif role in _SKIPPED:
            _skip(node, walk)
        elif role in (_BREAK, _EMBED) or (
            role == _SUP
            and is_note_behind("".join(pieces[-_PIECES_BEFORE:]))
            and node.text().strip().isdecimal()
        ):
            pieces.append(" ")
    text = "".join(pieces)
    if UNSEEN in text:
        text = text.replace(UNSEEN, "").replace(END, "")
    return " ".join(alts) if not text or text.isspace() else text, looked_at
