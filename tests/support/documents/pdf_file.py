"""PDF of one page, object by object."""

from __future__ import annotations

PLACE = b"/Rect[60 600 300 620]"


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%b>>stream\n%b\nendstream" % (len(data), entries, data)


def look(text: bytes) -> bytes:
    """The appearance of an annotation."""
    drawn = b"/Tx BMC BT /F1 12 Tf 2 4 Td (%b) Tj ET EMC" % text
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 240 20]/Resources<</Font<</F1 5 0 R>>>>"
    return stream(drawn, form)


def one_page(
    text: bytes = b"drawn", catalog: bytes = b"", page: bytes = b"", **objects: bytes
) -> bytes:
    """``catalog``, ``page``: their entries; ``o6=b"..."``: object 6. The page is object 3."""
    numbered = {
        1: b"<</Type/Catalog/Pages 2 0 R%b>>" % catalog,
        2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>%b>>" % page,
        4: stream(b"BT /F1 12 Tf 60 780 Td (%b) Tj ET" % text if text else b""),
        5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        **{int(name[1:]): content for name, content in objects.items()},
    }
    out, places = bytearray(b"%PDF-1.7\n"), {}
    for number, content in numbered.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start, size = len(out), max(numbered) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 %c \n" % (places.get(number, 0), b"fn"[number in places])
    return bytes(out) + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, start)


def annotated(annotation: bytes, **objects: bytes) -> bytes:
    """``annotation``: the entries of the page's only one."""
    objects["o6"] = b"<<%b%b>>" % (PLACE, annotation)
    return one_page(page=b"/Annots[6 0 R]", **objects)


def with_field(field: bytes, **objects: bytes) -> bytes:
    """``field``: the entries of a form field, which is its own widget."""
    objects["o6"] = b"<</Subtype/Widget/T(n)%b%b>>" % (PLACE, field)
    return one_page(catalog=b"/AcroForm<</Fields[6 0 R]>>", page=b"/Annots[6 0 R]", **objects)


def with_file(data: bytes, entries: bytes = b"", name: bytes = b"a.txt") -> bytes:
    """``data``: an embedded file as it is stored, ``entries``: of its stream."""
    return one_page(
        catalog=b"/Names<</EmbeddedFiles<</Names[(%b) 6 0 R]>>>>" % name,
        o6=b"<</Type/Filespec/UF(%b)/EF<</F 7 0 R>>>>" % name,
        o7=stream(data, b"/Type/EmbeddedFile" + entries),
    )
