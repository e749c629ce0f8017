"""Packages of Office by hand, for tests with one oddity each.

docx(para("word"), more=[("h1", "header", "kopf.xml")], extra={"word/kopf.xml": header})
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.reading import Unread
from tests.support.documents.corpus import zipped

OPEN = "http://schemas.openxmlformats.org"
W = f"{OPEN}/wordprocessingml/2006/main"
A = f"{OPEN}/drawingml/2006/main"
C = f"{OPEN}/drawingml/2006/chart"
P = f"{OPEN}/presentationml/2006/main"
S = f"{OPEN}/spreadsheetml/2006/main"
R = f"{OPEN}/officeDocument/2006/relationships"
M = f"{OPEN}/officeDocument/2006/math"
MC = f"{OPEN}/markup-compatibility/2006"
DGM = f"{OPEN}/drawingml/2006/diagram"
ODF = "urn:oasis:names:tc:opendocument:xmlns:"
NAMES = "".join(
    f' xmlns:{prefix}="{name}"'
    for prefix, name in {
        "w": W,
        "a": A,
        "c": C,
        "p": P,
        "r": R,
        "m": M,
        "mc": MC,
        "dgm": DGM,
        "v": "urn:schemas-microsoft-com:vml",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    }.items()
)
ODF_NAMES = "".join(
    f' xmlns:{prefix}="{name}"'
    for prefix, name in {
        "dc": "http://purl.org/dc/elements/1.1/",
        "xlink": "http://www.w3.org/1999/xlink",
        "math": "http://www.w3.org/1998/Math/MathML",
        "draw": f"{ODF}drawing:1.0",
        **{name: f"{ODF}{name}:1.0" for name in ("office", "text", "table", "style", "form")},
        "presentation": f"{ODF}presentation:1.0",
    }.items()
)
NONE: Mapping = MappingProxyType({})
Related = tuple[str, str, str]
"""Id, kind and target; a target with a scheme lies outside."""


def rels(*rows: Related) -> str:
    listed = "".join(
        f'<Relationship Id="{name}" Type="{R}/{kind}" Target="{target}" TargetMode="'
        f'{"External" if ":" in target else "Internal"}"/>'
        for name, kind, target in rows
    )
    return f'<Relationships xmlns="{OPEN}/package/2006/relationships">{listed}</Relationships>'


def package(main: str, content: str, more: Sequence[Related], extra: Mapping) -> bytes:
    folder, _, file = main.rpartition("/")
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{OPEN}/package/2006/content-types"/>',
            "_rels/.rels": rels(("r1", "officeDocument", main)),
            f"{folder}/_rels/{file}.rels": rels(*more),
            main: content,
            **extra,
        }
    )


def word(inside: str, root: str = "document") -> str:
    return f"<w:{root}{NAMES}>{inside}</w:{root}>"


def para(*runs: str) -> str:
    shown = (run if run.startswith("<") else f"<w:r><w:t>{run}</w:t></w:r>" for run in runs)
    return f"<w:p>{''.join(shown)}</w:p>"


def docx(
    body: str, main: str = "word/document.xml", more: Sequence[Related] = (), extra: Mapping = NONE
) -> bytes:
    return package(main, word(f"<w:body>{body}</w:body>"), more, extra)


def lines(*texts: str) -> str:
    return "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in texts)


def slide(inside: str, root: str = "sld") -> str:
    shape = f"<p:sp><p:txBody>{inside}</p:txBody></p:sp>"
    return f"<p:{root}{NAMES}><p:cSld><p:spTree>{shape}</p:spTree></p:cSld></p:{root}>"


def pptx(slides: list[str], more: Sequence[Related] = (), extra: Mapping = NONE) -> bytes:
    """Slides in this order, named the other way round; ``more`` are relationships of the first."""
    count = len(slides)
    listed = "".join(f'<p:sldId id="{n + 256}" r:id="s{n}"/>' for n in range(count))
    related = [(f"s{n}", "slide", f"slides/slide{count - n}.xml") for n in range(count)]
    content = f"<p:presentation{NAMES}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    parts = {f"ppt/slides/slide{count - n}.xml": slide(one) for n, one in enumerate(slides)}
    parts[f"ppt/slides/_rels/slide{count}.xml.rels"] = rels(*more)
    return package("ppt/presentation.xml", content, related[::-1], parts | extra)


def cell(reference: str, value: str, style: int | None = None) -> str:
    styled = "" if style is None else f' s="{style}"'
    try:
        float(value)
    except ValueError:
        return f'<c r="{reference}"{styled} t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{reference}"{styled}><v>{value}</v></c>'


def sheet(rows: str, after: str = "") -> str:
    return f'<worksheet xmlns="{S}" xmlns:r="{R}"><sheetData>{rows}</sheetData>{after}</worksheet>'


def styles(*codes: str) -> str:
    """Format n is ``codes[n - 1]``, or the built-in one of this number."""
    own = "".join(
        f'<numFmt numFmtId="{n + 200}" formatCode="{code.replace(chr(34), "&quot;")}"/>'
        for n, code in enumerate(codes)
        if len(code) > 2
    )
    used = "".join(
        f'<xf numFmtId="{n + 200 if len(code) > 2 else code}"/>' for n, code in enumerate(codes)
    )
    return (
        f'<styleSheet xmlns="{S}"><numFmts>{own}</numFmts><cellXfs><xf numFmtId="0"/>{used}'
        "</cellXfs></styleSheet>"
    )


def xlsx(
    rows: str,
    *codes: str,
    after: str = "",
    more: Sequence[Related] = (),
    extra: Mapping = NONE,
    main: str = "xl/workbook.xml",
) -> bytes:
    """One sheet; ``more`` are its relationships."""
    folder = main.rpartition("/")[0]
    content = (
        f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets><sheet name="List" sheetId="1" r:id="s1"/>'
        "</sheets></workbook>"
    )
    related = [("s1", "worksheet", "worksheets/sheet1.xml"), ("s2", "styles", "styles.xml")]
    parts = {
        f"{folder}/styles.xml": styles(*codes),
        f"{folder}/worksheets/sheet1.xml": sheet(rows, after),
        f"{folder}/worksheets/_rels/sheet1.xml.rels": rels(*more),
    }
    return package(main, content, related, parts | extra)


def opendocument(
    body: str,
    kind: str = "text",
    master: str = "",
    extra: Mapping = NONE,
    manifest: str = "<manifest/>",
) -> bytes:
    content = (
        f"<office:document-content{ODF_NAMES}><office:body><office:{kind}>{body}"
        f"</office:{kind}></office:body></office:document-content>"
    )
    styled = f"<office:document-styles{ODF_NAMES}>{master}</office:document-styles>"
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            "styles.xml": styled,
            "META-INF/manifest.xml": manifest,
            **extra,
        },
        ("mimetype",),
    )


def flat(body: str, kind: str = "text") -> bytes:
    return (
        f"<?xml version='1.0' encoding='UTF-8'?><office:document{ODF_NAMES}"
        f' office:mimetype="application/vnd.oasis.opendocument.{kind}"><office:meta>'
        f"<dc:title>Flat title</dc:title></office:meta><office:body><office:{kind}>{body}"
        f"</office:{kind}></office:body></office:document>"
    ).encode()


def outcome(mime: str, body: bytes) -> str:
    """The outcome of a document; "" for one that was read."""
    try:
        page = parts.read(mime, body, "http://h/a", None)
    except Unread as unread:
        return unread.outcome.value
    return page.unread.partition(":")[0]


def renamed(body: bytes, names: Mapping = NONE, change=lambda name: name) -> bytes:
    """The same package with other names of its parts."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return zipped({change(names.get(n, n)): archive.read(n) for n in archive.namelist()})
