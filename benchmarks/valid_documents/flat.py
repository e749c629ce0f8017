"""Sources of LibreOffice: flat OpenDocument in odd but valid forms, with the words of each place.

for source in texts():
    source.xml, source.said["footnote"]   # the document, and the words of its footnotes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape

from benchmarks.valid_documents.words import ASIAN, EASTERN, LATIN, RIGHT_TO_LEFT, Words

_URN = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMES = "".join(
    f' xmlns:{prefix}="{_URN}{name}:1.0"'
    for prefix, name in {
        **{name: name for name in ("office", "text", "table", "style", "presentation")},
        **{name: name for name in ("form", "config", "meta", "chart")},
        "draw": "drawing",
        "fo": "xsl-fo-compatible",
        "svg": "svg-compatible",
        "number": "datastyle",
    }.items()
) + "".join(
    f' xmlns:{prefix}="{name}"'
    for prefix, name in {
        "dc": "http://purl.org/dc/elements/1.1/",
        "xlink": "http://www.w3.org/1999/xlink",
        "math": "http://www.w3.org/1998/Math/MathML",
        "ooo": "http://openoffice.org/2004/office",
        "loext": f"{_URN[:-6]}loext:1.0",
        "of": f"{_URN}of:1.2",
    }.items()
)
_FRAME = 'svg:width="7cm" svg:height="2cm" svg:x="2cm"'


@dataclass
class Source:
    """``said``: place -> the words that stand there."""

    name: str
    kind: str
    body: str = ""
    styles: str = ""
    masters: str = ""
    automatic: str = ""
    said: dict[str, str] = field(default_factory=dict)

    @property
    def extension(self) -> str:
        return {"text": "fodt", "spreadsheet": "fods", "presentation": "fodp"}.get(
            self.kind, "fodg"
        )

    @property
    def xml(self) -> str:
        title = self.said.get("title", "")
        mime = f"application/vnd.oasis.opendocument.{self.kind}"
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document{_NAMES} '
            f'office:version="1.3" office:mimetype="{mime}"><office:meta><dc:title>{title}'
            f"</dc:title><dc:creator>Ada</dc:creator></office:meta><office:styles>{self.styles}"
            f"</office:styles><office:automatic-styles>{_PAGE}{self.automatic}"
            f"</office:automatic-styles><office:master-styles>{self.masters or _MASTER}"
            f"</office:master-styles><office:body><office:{self.kind}>{self.body}"
            f"</office:{self.kind}></office:body></office:document>"
        )


_PAGE = (
    '<style:page-layout style:name="pm"><style:page-layout-properties fo:page-width="21cm" '
    'fo:page-height="29.7cm" fo:margin-left="2cm" fo:margin-right="2cm" fo:margin-top="2cm" '
    'fo:margin-bottom="2cm"/><style:header-style><style:header-footer-properties '
    'fo:min-height="1cm"/></style:header-style><style:footer-style>'
    '<style:header-footer-properties fo:min-height="1cm"/></style:footer-style></style:page-layout>'
    '<style:style style:name="dp" style:family="drawing-page"/>'
    '<style:style style:name="cols" style:family="section"><style:section-properties>'
    '<style:columns fo:column-count="2" fo:column-gap="0.5cm"/></style:section-properties>'
    "</style:style>"
    '<style:style style:name="rot" style:family="graphic"><style:graphic-properties '
    'draw:fill="none"/></style:style>'
)
_MASTER = (
    '<style:master-page style:name="Standard" style:page-layout-name="pm" draw:style-name="dp"/>'
)


class _Making:
    """Makes one source; ``say`` gives words for a place."""

    def __init__(self, name: str, kind: str) -> None:
        self.source, self.words = Source(name, kind), Words(f"{kind} {name}")

    def say(self, place: str = "body", script: str = "ascii", count: int = 4) -> str:
        return self.put(place, self.words(script, count))

    def mixed(self, place: str, scripts: tuple[str, ...], count: int = 3) -> str:
        return self.put(place, self.words.mixed(scripts, count))

    def put(self, place: str, text: str) -> str:
        self.source.said[place] = f"{self.source.said.get(place, '')} {text}".strip()
        return text


def p(text: str, style: str = "") -> str:
    styled = f' text:style-name="{style}"' if style else ""
    return f"<text:p{styled}>{text}</text:p>"


def texts() -> Iterator[Source]:
    """Documents of a word processor."""
    for name, make in _TEXTS.items():
        making = _Making(name, "text")
        say = making.say
        say("title", count=3)
        heading = f'<text:h text:outline-level="1">{say()}</text:h>'
        making.source.body = heading + make(making, say) + p(say())
        yield making.source


_Make = Callable[[_Making, Callable[..., str]], str]


def _scripts(scripts: tuple[str, ...]) -> _Make:
    return lambda making, _: "".join(p(making.mixed("body", (one,), 8)) for one in scripts)


def _footnotes(making: _Making, say: Callable[..., str]) -> str:
    def note(kind: str, number: int) -> str:
        return (
            f'<text:note text:id="n{kind}{number}" text:note-class="{kind}"><text:note-citation>'
            f"{number}</text:note-citation><text:note-body>{p(say(kind))}{p(say(kind))}"
            "</text:note-body></text:note>"
        )

    return "".join(
        p(say() + note("footnote", n) + " " + say() + note("endnote", n)) for n in range(1, 4)
    )


def _heads(making: _Making, say: Callable[..., str]) -> str:
    making.source.masters = (
        '<style:master-page style:name="Standard" style:page-layout-name="pm">'
        f"<style:header>{p(say('header'))}</style:header><style:footer>{p(say('footer'))}"
        "</style:footer></style:master-page>"
    )
    return p(say()) + p(say())


def _tables(making: _Making, say: Callable[..., str]) -> str:
    def cell(inside: str, more: str = "") -> str:
        return f"<table:table-cell{more}>{inside}</table:table-cell>"

    inner = (
        '<table:table table:name="In"><table:table-column/><table:table-row>'
        f"{cell(p(say('nested')))}</table:table-row><table:table-row>{cell(p(say('nested')))}"
        "</table:table-row></table:table>"
    )
    return (
        '<table:table table:name="T"><table:table-column table:number-columns-repeated="3"/>'
        f"<table:table-header-rows><table:table-row>{cell(p(say()))}{cell(p(say()))}"
        f"{cell(p(say()))}</table:table-row></table:table-header-rows><table:table-row>"
        f"{cell(p(say()), ' table:number-columns-spanned=' + chr(34) + '2' + chr(34))}"
        f"<table:covered-table-cell/>{cell(p(say()) + p(say()))}</table:table-row>"
        f"<table:table-row>{cell(inner)}{cell(p(say()))}{cell('<text:list><text:list-item>' + p(say()) + '</text:list-item></text:list>')}"
        "</table:table-row></table:table>"
    )


def _boxes(making: _Making, say: Callable[..., str]) -> str:
    frame = (
        f'<draw:frame text:anchor-type="paragraph" {_FRAME} svg:y="1cm"><draw:text-box '
        f'fo:min-height="1cm">{p(say("frame"))}{p(say("frame"))}</draw:text-box></draw:frame>'
    )
    shape = (
        f'<draw:custom-shape text:anchor-type="paragraph" {_FRAME} svg:y="4cm">{p(say("shape"))}'
        '<draw:enhanced-geometry svg:viewBox="0 0 21600 21600" draw:type="rectangle" '
        'draw:enhanced-path="M 0 0 L 21600 0 21600 21600 0 21600 0 0 Z N"/></draw:custom-shape>'
    )
    drawn = (
        f'<draw:frame text:anchor-type="as-char" {_FRAME}><draw:text-box>'
        f"{p(say('frame'))}</draw:text-box></draw:frame>"
    )
    return p(f"{say()} {frame}") + p(f"{say()} {shape}") + p(f"{say()} {drawn} {say()}")


def _comments(making: _Making, say: Callable[..., str]) -> str:
    def comment(name: str) -> str:
        return (
            f'<office:annotation office:name="{name}"><dc:creator>Bob</dc:creator>'
            f"<dc:date>2024-01-01T12:00:00</dc:date>{p(say('comment'))}{p(say('comment'))}"
            "</office:annotation>"
        )

    end = '<office:annotation-end office:name="c1"/>'
    return p(f"{say()}{comment('c1')} {say()} {end}{say()}") + p(comment("c2") + say())


def _changes(making: _Making, say: Callable[..., str]) -> str:
    def changed(name: str, kind: str, inside: str = "") -> str:
        return (
            f'<text:changed-region xml:id="{name}" text:id="{name}"><text:{kind}>'
            "<office:change-info><dc:creator>Bob</dc:creator><dc:date>2024-01-01T12:00:00"
            f"</dc:date></office:change-info>{inside}</text:{kind}></text:changed-region>"
        )

    regions = changed("k1", "insertion") + changed("k2", "deletion", p(say("deleted")))
    begin, end, gone = (
        f'<text:change{part} text:change-id="{name}"/>'
        for part, name in (("-start", "k1"), ("-end", "k1"), ("", "k2"))
    )
    return (
        f"<text:tracked-changes>{regions}</text:tracked-changes>"
        + p(f"{say()} {begin}{say()}{end} {say()}")
        + p(f"{say()} {gone}<text:s/>{say()}")
    )


def _fields(making: _Making, say: Callable[..., str]) -> str:
    variable = say("variable", count=1)
    declared = (
        '<text:user-field-decls><text:user-field-decl office:value-type="string" '
        f'office:string-value="{variable}" text:name="v"/></text:user-field-decls>'
    )
    mark = say("body", count=2)
    return declared + "".join(
        p(f"{say()} {one} {say()}")
        for one in (
            f'<text:user-field-get text:name="v">{variable}</text:user-field-get>',
            '<text:page-number text:select-page="current">1</text:page-number>',
            '<text:date text:fixed="true" text:date-value="2024-03-06">2024-03-06</text:date>',
            f'<text:bookmark-start text:name="m"/>{mark}<text:bookmark-end text:name="m"/>',
            f'<text:bookmark-ref text:reference-format="text" text:ref-name="m">{mark}'
            "</text:bookmark-ref>",
            f'<text:placeholder text:placeholder-type="text">{say("placeholder")}'
            "</text:placeholder>",
            "<text:title/>",
        )
    )


def _lists(making: _Making, say: Callable[..., str]) -> str:
    deep = p(say())
    for _ in range(6):
        deep = f"<text:list><text:list-item>{p(say())}{deep}</text:list-item></text:list>"
    columns = (
        f'<text:section text:name="S" text:style-name="cols">{p(say())}{p(say())}</text:section>'
    )
    header = f"<text:list><text:list-header>{p(say())}</text:list-header></text:list>"
    return deep + columns + header


def _letters(making: _Making, say: Callable[..., str]) -> str:
    def split(word: str, by: str) -> str:
        return f"{word[:3]}{by}{word[3:]}"

    soft = " ".join(split(word, "\u00ad") for word in say().split())
    spans = " ".join(
        f"<text:span>{word[:2]}</text:span><text:span>{word[2:]}</text:span>"
        for word in say().split()
    )
    breaks = "<text:line-break/>".join(say().split())
    tabs = "<text:tab/>".join(say("tab").split())
    spaces = '<text:s text:c="3"/>'.join(say().split())
    hard = "\u00a0".join(say().split()) + " " + "\u2011".join(say().split())
    return "".join(map(p, (soft, spans, breaks, tabs, spaces, hard, "“" + say() + "”—" + say())))


def _links(making: _Making, say: Callable[..., str]) -> str:
    link = f'<text:a xlink:type="simple" xlink:href="http://h.example/a">{say()}</text:a>'
    contents = (
        '<text:table-of-content text:name="C"><text:table-of-content-source '
        'text:outline-level="2"/><text:index-body><text:index-title text:name="H">'
        f"{p(say('contents'))}</text:index-title>{p(say('contents'))}</text:index-body>"
        "</text:table-of-content>"
    )
    mark = f'{say()} <text:alphabetical-index-mark text:string-value="{say("index", count=1)}"/>'
    second = f'<text:h text:outline-level="2">{say()}</text:h>'
    return contents + p(link + " " + say()) + second + p(mark)


def _formulas(making: _Making, say: Callable[..., str]) -> str:
    names = say("formula", count=3).split()
    rows = "<math:mo>+</math:mo>".join(f"<math:mi>{name}</math:mi>" for name in names)
    formula = (
        f'<draw:frame text:anchor-type="as-char" {_FRAME}><draw:object><math:math>'
        f"<math:semantics><math:mrow>{rows}</math:mrow></math:semantics></math:math>"
        "</draw:object></draw:frame>"
    )
    return p(say() + " " + formula + " " + say())


def _ruby(making: _Making, say: Callable[..., str]) -> str:
    return "".join(
        p(
            f"{say(script='japanese')} <text:ruby><text:ruby-base>{say('ruby', 'chinese', 1)}"
            f"</text:ruby-base><text:ruby-text>{say('ruby', 'japanese', 1)}</text:ruby-text>"
            f"</text:ruby>。"
        )
        for _ in range(3)
    )


def _styled(making: _Making, say: Callable[..., str]) -> str:
    making.source.automatic = "".join(
        f'<style:style style:name="{name}" style:family="{family}"><style:{family}-properties '
        f"{what}/></style:style>"
        for name, family, what in (
            ("caps", "text", 'fo:font-variant="small-caps"'),
            ("up", "text", 'fo:text-transform="capitalize"'),
            ("raise", "text", 'style:text-position="super 58%"'),
            ("big", "text", 'fo:font-size="40pt" fo:letter-spacing="0.2cm"'),
            ("small", "text", 'fo:font-size="4pt" fo:color="#ffffff"'),
            ("turn", "text", 'style:text-rotation-angle="90"'),
        )
    )
    return "".join(
        p(f'{say()} <text:span text:style-name="{name}">{say()}</text:span> {say()}')
        for name in ("caps", "up", "raise", "big", "small", "turn")
    )


_TEXTS: dict[str, _Make] = {
    "latin": _scripts(LATIN),
    "eastern": _scripts(EASTERN),
    "right-to-left": _scripts(RIGHT_TO_LEFT),
    "asian": _scripts(ASIAN),
    "tables": _tables,
    "footnotes": _footnotes,
    "heads": _heads,
    "boxes": _boxes,
    "comments": _comments,
    "changes": _changes,
    "fields": _fields,
    "lists": _lists,
    "letters": _letters,
    "links": _links,
    "formulas": _formulas,
    "ruby": _ruby,
    "styled": _styled,
    "long": lambda making, say: "".join(p(say(count=60)) for _ in range(60)),
}


def sheets() -> Iterator[Source]:
    """Spreadsheets."""
    for name, fill in _SHEETS.items():
        making = _Making(name, "spreadsheet")
        say = making.say
        say("title", count=3)
        making.source.automatic = _NUMBERS
        made = fill(making, say)
        first = table(making.say("sheet", count=1), made + row(text_cell(say()))) if made else ""
        making.source.body = first + making.source.body
        yield making.source


def table(name: str, rows: str, more: str = "") -> str:
    return f'<table:table table:name="{name}"{more}>{rows}</table:table>'


def row(*cells: str, more: str = "") -> str:
    return f"<table:table-row{more}>{''.join(cells)}</table:table-row>"


def text_cell(*lines: str, more: str = "") -> str:
    return (
        f'<table:table-cell office:value-type="string"{more}>{"".join(map(p, lines))}'
        "</table:table-cell>"
    )


_NUMBERS = (
    '<number:date-style style:name="d"><number:day number:style="long"/><number:text>.'
    '</number:text><number:month number:style="long"/><number:text>.</number:text><number:year '
    'number:style="long"/></number:date-style><number:percentage-style style:name="pc">'
    '<number:number number:decimal-places="1" number:min-integer-digits="1"/><number:text>%'
    '</number:text></number:percentage-style><number:number-style style:name="z"><number:number '
    'number:min-integer-digits="8"/></number:number-style>'
    '<style:style style:name="cd" style:family="table-cell" style:data-style-name="d"/>'
    '<style:style style:name="cp" style:family="table-cell" style:data-style-name="pc"/>'
    '<style:style style:name="cz" style:family="table-cell" style:data-style-name="z"/>'
    '<style:style style:name="ta" style:family="table"><style:table-properties '
    'table:display="false"/></style:style>'
)


def _cells(scripts: tuple[str, ...]) -> _Make:
    return lambda making, _: "".join(
        row(*(text_cell(making.mixed("body", (one,), 3)) for _ in range(3))) for one in scripts
    )


def _values(making: _Making, say: Callable[..., str]) -> str:
    def valued(kind: str, value: str, shown: str, style: str = "") -> str:
        attribute = "date-value" if kind == "date" else "value"
        styled = f' table:style-name="{style}"' if style else ""
        return row(
            text_cell(say()),
            f'<table:table-cell office:value-type="{kind}" office:{attribute}="{value}"{styled}>'
            f"{p(shown)}</table:table-cell>",
        )

    return (
        valued("date", "2024-03-06", "06.03.2024", "cd")
        + valued("percentage", "0.195", "19.5%", "cp")
        + valued("float", "47115", "00047115", "cz")
        + valued("float", "1234.5", "1234.5")
    )


def _formula_cells(making: _Making, say: Callable[..., str]) -> str:
    one, two = say(count=1), say(count=1)
    both = making.put("result", one + two)
    return row(
        text_cell(one),
        text_cell(two),
        '<table:table-cell table:formula="of:=[.A1]&amp;[.B1]" office:value-type="string" '
        f'office:string-value="{both}">{p(both)}</table:table-cell>',
        '<table:table-cell table:formula="of:=1=1" office:value-type="boolean" '
        'office:boolean-value="true"><text:p>TRUE</text:p></table:table-cell>',
    )


def _merged(making: _Making, say: Callable[..., str]) -> str:
    spanned = ' table:number-columns-spanned="2" table:number-rows-spanned="2"'
    hole = "<table:covered-table-cell/>"
    return row(text_cell(say(), more=spanned), hole, text_cell(say())) + row(
        hole, hole, text_cell(say())
    )


def _hidden(making: _Making, say: Callable[..., str]) -> str:
    rows = row(text_cell(say("hidden sheet")))
    making.source.body = table(say("sheet", count=1), rows, ' table:style-name="ta"') + table(
        say("sheet", count=1), row(text_cell(say()))
    )
    return row(text_cell(say("hidden row")), more=' table:visibility="collapse"') + row(
        text_cell(say()), more=' table:visibility="filter"'
    )


def _cell_comments(making: _Making, say: Callable[..., str]) -> str:
    def with_note() -> str:
        return (
            '<table:table-cell office:value-type="string"><office:annotation office:display="false"'
            f' svg:width="4cm" svg:height="2cm"><dc:creator>Bob</dc:creator>{p(say("comment"))}'
            f"{p(say('comment'))}</office:annotation>{p(say())}</table:table-cell>"
        )

    return row(with_note(), with_note()) + row(with_note())


def _rich(making: _Making, say: Callable[..., str]) -> str:
    making.source.automatic += (
        '<style:style style:name="b" style:family="text"><style:text-properties '
        'fo:font-weight="bold"/></style:style>'
    )
    word = say(count=1)
    pieces = f'{word[:3]}<text:span text:style-name="b">{word[3:]}</text:span> {say()}'
    link = f'<text:a xlink:href="http://h.example/a" xlink:type="simple">{say("link")}</text:a>'
    return row(text_cell(pieces), text_cell(say(), say(), say())) + row(text_cell(link))


def _sheet_heads(making: _Making, say: Callable[..., str]) -> str:
    regions = "".join(
        f"<style:region-{side}>{p(say('header'))}</style:region-{side}>"
        for side in ("left", "center", "right")
    )
    making.source.masters = (
        '<style:master-page style:name="Default" style:page-layout-name="pm">'
        f"<style:header>{regions}</style:header><style:footer>{p(say('footer'))}</style:footer>"
        "</style:master-page>"
    )
    making.source.automatic += (
        '<style:style style:name="tp" style:family="table" style:master-page-name="Default">'
        '<style:table-properties table:display="true"/></style:style>'
    )
    making.source.body = table(
        say("sheet", count=1), row(text_cell(say())), ' table:style-name="tp"'
    )
    return ""


def _sheet_boxes(making: _Making, say: Callable[..., str]) -> str:
    shapes = (
        f'<table:shapes><draw:frame {_FRAME} svg:y="3cm"><draw:text-box>{p(say("shape"))}'
        f'</draw:text-box></draw:frame><draw:custom-shape {_FRAME} svg:y="6cm">{p(say("shape"))}'
        '<draw:enhanced-geometry svg:viewBox="0 0 21600 21600" draw:type="rectangle" '
        'draw:enhanced-path="M 0 0 L 21600 0 21600 21600 0 21600 0 0 Z N"/></draw:custom-shape>'
        "</table:shapes>"
    )
    return shapes + row(text_cell(say()))


def _sheet_names(making: _Making, say: Callable[..., str]) -> str:
    for script in ("german", "russian", "greek", "chinese"):
        name = making.say("sheet", script, 2)
        making.source.body += table(name, row(text_cell(say(script=script))))
    return row(text_cell(say()))


def _far(making: _Making, say: Callable[..., str]) -> str:
    empty = '<table:table-cell table:number-columns-repeated="40"/>'
    return (
        row("<table:table-cell/>", more=' table:number-rows-repeated="900"')
        + row(empty, text_cell(say()))
        + row(text_cell(say(), more=' table:number-columns-repeated="3"'))
    )


_SHEETS: dict[str, _Make] = {
    "latin": _cells(LATIN),
    "eastern": _cells(EASTERN),
    "right-to-left": _cells(RIGHT_TO_LEFT),
    "asian": _cells(ASIAN),
    "values": _values,
    "formulas": _formula_cells,
    "merged": _merged,
    "hidden": _hidden,
    "comments": _cell_comments,
    "rich": _rich,
    "heads": _sheet_heads,
    "boxes": _sheet_boxes,
    "names": _sheet_names,
    "far": _far,
    "long": lambda making, say: "".join(row(text_cell(say(count=3))) for _ in range(700)),
    "wide": lambda making, say: row(*(text_cell(say(count=2)) for _ in range(200))),
    "letters": lambda making, say: row(
        *(text_cell(f"“{say()}” – €{say()}…"), text_cell(say().replace(" ", "\u00a0")))
    ),
}


def slides() -> Iterator[Source]:
    """Presentations."""
    for name, make in _SLIDES.items():
        making = _Making(name, "presentation")
        making.say("title", count=3)
        making.source.body = _slide(making, make(making, making.say)) + _slide(making, "", "Two")
        yield making.source


def drawings() -> Iterator[Source]:
    """Drawings."""
    for name, make in _SLIDES.items():
        if name in ("notes", "heads"):
            continue
        making = _Making(name, "drawing")
        making.say("title", count=3)
        inside = make(making, making.say)
        making.source.body = (
            f'<draw:page draw:name="P" draw:master-page-name="Standard">{inside}</draw:page>'
        )
        yield making.source


def _slide(making: _Making, inside: str, name: str = "One", notes: str = "") -> str:
    head = (
        f'<draw:frame presentation:class="title" {_FRAME} svg:y="1cm"><draw:text-box>'
        f"{p(making.say('head'))}</draw:text-box></draw:frame>"
    )
    return (
        f'<draw:page draw:name="{name}" draw:master-page-name="Standard">{head}{inside}{notes}'
        "</draw:page>"
    )


def _box(*lines: str, y: int = 4, kind: str = "") -> str:
    kind = f' presentation:class="{kind}"' if kind else ""
    return (
        f'<draw:frame{kind} {_FRAME} svg:y="{y}cm"><draw:text-box>{"".join(map(p, lines))}'
        "</draw:text-box></draw:frame>"
    )


def _boxed(scripts: tuple[str, ...]) -> _Make:
    return lambda making, _: "".join(
        _box(making.mixed("body", (one,), 3), y=3 + 2 * at) for at, one in enumerate(scripts)
    )


def _notes(making: _Making, say: Callable[..., str]) -> str:
    return (
        _box(say())
        + "<presentation:notes>"
        + '<draw:frame presentation:class="notes" svg:width="9cm" svg:height="9cm" svg:x="1cm" '
        + f'svg:y="12cm"><draw:text-box>{p(say("notes"))}{p(say("notes"))}</draw:text-box>'
        + "</draw:frame></presentation:notes>"
    )


def _slide_table(making: _Making, say: Callable[..., str]) -> str:
    rows = "".join(
        f"<table:table-row><table:table-cell>{p(say())}</table:table-cell><table:table-cell>"
        f"{p(say())}</table:table-cell></table:table-row>"
        for _ in range(3)
    )
    return (
        f'<draw:frame {_FRAME} svg:y="4cm"><table:table><table:table-column '
        f'table:number-columns-repeated="2"/>{rows}</table:table></draw:frame>'
    )


def _groups(making: _Making, say: Callable[..., str]) -> str:
    inner = f"<draw:g>{_box(say(), y=4)}{_box(say(), y=7)}</draw:g>"
    return f"<draw:g>{inner}{_box(say(), y=10)}</draw:g>"


def _slide_comments(making: _Making, say: Callable[..., str]) -> str:
    return _box(say()) + (
        '<office:annotation svg:x="1cm" svg:y="1cm"><dc:creator>Bob</dc:creator><dc:date>'
        f"2024-01-01T12:00:00</dc:date>{p(say('comment'))}</office:annotation>"
    )


def _shapes(making: _Making, say: Callable[..., str]) -> str:
    return "".join(
        f'<draw:{kind} {_FRAME} svg:y="{y}cm">{p(say())}</draw:{kind}>'
        for kind, y in (("rect", 4), ("ellipse", 8))
    ) + (
        f'<draw:line svg:x1="1cm" svg:y1="1cm" svg:x2="5cm" svg:y2="5cm">{p(say("line"))}'
        f'</draw:line><draw:custom-shape {_FRAME} svg:y="12cm">{p(say())}<draw:enhanced-geometry '
        'svg:viewBox="0 0 21600 21600" draw:type="cube" draw:enhanced-path="M 0 0 L 21600 0 '
        '21600 21600 0 21600 0 0 Z N"/></draw:custom-shape>'
    )


def _outline(making: _Making, say: Callable[..., str]) -> str:
    deep = p(say())
    for _ in range(4):
        deep = f"<text:list><text:list-item>{p(say())}{deep}</text:list-item></text:list>"
    return (
        f'<draw:frame presentation:class="outline" {_FRAME} svg:y="4cm"><draw:text-box>{deep}'
        "</draw:text-box></draw:frame>"
    )


def _turned(making: _Making, say: Callable[..., str]) -> str:
    return (
        '<draw:frame svg:width="7cm" svg:height="2cm" draw:transform="rotate (1.57) translate '
        f'(3cm 12cm)"><draw:text-box>{p(say())}</draw:text-box></draw:frame>'
    )


def _slide_letters(making: _Making, say: Callable[..., str]) -> str:
    word = say(count=1)
    spans = f"<text:span>{word[:3]}</text:span><text:span>{word[3:]}</text:span>"
    soft = " ".join(f"{one[:3]}\u00ad{one[3:]}" for one in say().split())
    return _box(
        spans, soft, "<text:line-break/>".join(say().split()), "<text:tab/>".join(say().split())
    )


def _slide_link(making: _Making, say: Callable[..., str]) -> str:
    link = f'<text:a xlink:href="http://h.example/a" xlink:type="simple">{say()}</text:a>'
    return _box(f"{say()} {link}", say())


def _slide_fields(making: _Making, say: Callable[..., str]) -> str:
    return _box(f"{say()} <text:page-number>1</text:page-number> {say()}") + _box(
        f"<text:date>2024-03-06</text:date> {say()}", y=8
    )


_SLIDES: dict[str, _Make] = {
    "latin": _boxed(LATIN),
    "eastern": _boxed(EASTERN),
    "right-to-left": _boxed(RIGHT_TO_LEFT),
    "asian": _boxed(ASIAN),
    "notes": _notes,
    "tables": _slide_table,
    "groups": _groups,
    "comments": _slide_comments,
    "shapes": _shapes,
    "outline": _outline,
    "turned": _turned,
    "letters": _slide_letters,
    "links": _slide_link,
    "fields": _slide_fields,
    "subtitle": lambda making, say: _box(say(), y=6, kind="subtitle"),
    "many": lambda making, say: "".join(_box(say(), y=2 + n) for n in range(20)),
    "long": lambda making, say: _box(*(say(count=8) for _ in range(60))),
}


def escaped(text: str) -> str:
    return escape(text, quote=True)
