"""Forms, notes, outlines, actions and embedded files of a PDF are found beside its text."""

import base64
import io
import zlib

import pikepdf
import pypdfium2.raw as pdfium_c
import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.pdfs import pdf_objects
from larmspider.items import Page
from tests.support.documents import corpus
from tests.support.documents.pdf_file import (
    PLACE,
    annotated,
    look,
    one_page,
    stream,
    with_field,
    with_file,
)


def read(body: bytes) -> Page:
    return parts.read("application/pdf", body, "http://h/a.pdf", None)


def notes(body: bytes) -> str:
    """The text behind that which the only page draws."""
    own, _, more = read(body).text.partition("\n")
    assert own == "drawn"
    return more


def urls(body: bytes) -> list[str]:
    return sorted(link.url for link in read(body).links)


def test_a_letter_beyond_unicode_costs_no_text(monkeypatch):
    """A font may map a letter to any number; PDFium gives it as it is."""
    known = pdfium_c.FPDFText_GetUnicode
    odd = (0xE0E0E0, 0xFFFFFFFF)
    monkeypatch.setattr(
        pdfium_c, "FPDFText_GetUnicode", lambda page, at: odd[at] if at < 2 else known(page, at)
    )
    page = read(one_page())
    assert (page.text, page.title) == ("drawn", "awn")


RICH = b"(<?xml version='1.0'?><body xmlns='http://www.w3.org/1999/xhtml'><p>rich</p><p>text</p></body>)"


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        (b"/FT/Tx/V(typed)", "typed"),
        (b"/FT/Tx/V<FEFF00DC006200650072>", "Über"),
        (b"/FT/Tx/V 7 0 R", "streamed"),
        (b"/FT/Tx/RV" + RICH, "rich text"),
        (b"/FT/Tx/V(typed)/AP<</N 8 0 R>>", "looks typed"),
        (b"/FT/Tx/Ff 8192/V(secret)", ""),
        (b"/FT/Tx/V(drawn)", ""),
        (b"/FT/Ch/V(b)/Opt[(a)(b)]", "b"),
        (b"/FT/Ch/V(b)/Opt[[(a)(one)][(b)(two)]]", "two"),
        (b"/FT/Ch/V[(a)(b)]/Opt[[(a)(one)][(b)(two)]]", "one two"),
        (b"/FT/Ch/V(own)/Opt[[(a)(one)]]", "own"),
        (b"/FT/Btn/V/female/AS/female", "female"),
        (b"/FT/Btn/V/1/Opt[(first)(second)]", "second"),
        (b"/FT/Btn/V/Off", ""),
        (b"/FT/Btn/Ff 65536/MK<</CA(Send)>>", "Send"),
        (b"/FT/Sig/V<</Name(Ann Signer)/Reason(checked)/Contents<00>>>", "Ann Signer checked"),
        (b"/Parent 9 0 R", "inherited"),
    ],
)
def test_a_field_shows_its_value(field, shown):
    body = with_field(
        field,
        o7=stream(b"streamed"),
        o8=look(b"looks"),
        o9=b"<</FT/Tx/V(inherited)/Kids[6 0 R]>>",
    )
    assert notes(body) == shown


def test_a_hyphen_at_the_end_of_a_line_is_no_letter_of_the_title():
    page = read(one_page(b"Har-) Tj 0 -14 Td (bour rules"))
    assert (page.title, page.text) == ("Harbour rules", "Harbour rules")


def test_a_field_that_no_page_shows_has_its_value():
    form = b"/AcroForm<</Fields[<</T(a)/Kids[<</FT/Tx/V(hidden)>>]>>]>>"
    assert notes(one_page(catalog=form)) == "hidden"


XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-\
syntax-ns#"><rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/\
elements/1.1/" xmp:ModifyDate="2024-05-06T07:08:09Z"><dc:title><rdf:Alt><rdf:li>Über Regeln</rdf:li>
<rdf:li>Rules</rdf:li></rdf:Alt></dc:title><dc:creator><rdf:Seq><rdf:li>Ann</rdf:li><rdf:li>Bob
</rdf:li></rdf:Seq></dc:creator></rdf:Description></rdf:RDF></x:xmpmeta>""".encode()


def test_metadata_of_xmp_are_read_where_there_are_no_others():
    body = one_page(
        catalog=b"/Metadata 6 0 R",
        o6=stream(XMP, b"/Type/Metadata/Subtype/XML"),
        o7=b"<</Title(Own)/Author(Eve)>>",
    )
    page = read(body)
    assert (page.title, page.author, page.modified) == ("Über Regeln", "Ann; Bob", 1_714_979_289.0)
    informed = body.replace(b"/Root 1 0 R", b"/Root 1 0 R/Info 7 0 R")
    page = read(informed)
    assert (page.title, page.author) == ("Own", "Eve")


XFA = (
    b'<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/"><template><subform><draw><value><text>Label'
    b"</text></value></draw><script>no()</script></subform></template><xfa:datasets"
    b' xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><xfa:data><f><n>Xfa  data</n><m/></f>'
    b"</xfa:data></xfa:datasets></xdp:xdp>"
)


def test_data_of_xfa_are_read():
    packed = stream(zlib.compress(XFA), b"/Filter/FlateDecode")
    assert notes(one_page(catalog=b"/AcroForm<</XFA 6 0 R>>", o6=packed)) == "Xfa data Label"
    half = XFA.index(b"<xfa:datasets")
    split = one_page(
        catalog=b"/AcroForm<</XFA[(a) 6 0 R (datasets) 7 0 R]>>",
        o6=stream(XFA[:half]),
        o7=stream(XFA[half:]),
    )
    assert notes(split) == "Xfa data Label"
    bare = XFA.partition(b">")[2].removesuffix(b"</xdp:xdp>")
    alone = one_page(catalog=b"/AcroForm<</XFA[(t) 6 0 R]>>", o6=stream(b"<?xml?>" + bare))
    assert notes(alone) == "Xfa data Label"
    filled = with_field(b"/FT/Tx/V(Xfa data)", o7=stream(XFA))
    assert notes(filled.replace(b"/Fields[6 0 R]", b"/XFA 7 0 R/Fields[6 0 R]")) == "Xfa data"


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [
        *(
            (b"/Subtype/%b/Contents(a note)" % kind, "a note")
            for kind in (b"Text", b"Highlight", b"Stamp", b"FreeText", b"Ink", b"Square", b"Caret")
        ),
        (b"/Subtype/Link/Contents(a note)", "a note"),
        (b"/Subtype/Own/Contents(a note)", "a note"),
        (b"/Subtype/Popup/Contents(a note)", ""),
        (b"/Subtype/Highlight/Contents(drawn)", ""),
        (b"/Subtype/Text/RC" + RICH, "rich text"),
        (b"/Subtype/Text/Contents(plain text)/RC" + RICH, "plain text"),
        (b"/Subtype/Stamp/AP<</N 7 0 R>>", "APPROVED"),
        (b"/Subtype/FreeText/Contents(APPROVED)/AP<</N 7 0 R>>", "APPROVED"),
    ],
)
def test_an_annotation_has_its_contents_once(annotation, shown):
    assert notes(annotated(annotation, o7=look(b"APPROVED"))) == shown


def test_notes_stand_on_their_page():
    body = corpus.pdf(["one", "two", "three"], link="http://h/")
    body = body.replace(b"/Annots[5 0 R]", b"").replace(
        b"/Contents 13 0 R", b"/Contents 13 0 R/Annots[<</Subtype/Text/Contents(of two)>>]"
    )
    assert read(body).text == "one\ftwo\nof two\fthree"


def test_titles_of_the_outline_stand_on_their_pages():
    first, nested, again = (
        b"<</Title(%b)/Dest[%d 0 R/Fit]%b>>" % row
        for row in (
            (b"drawn", 3, b"/Next 8 0 R"),
            (b"Second", 3, b"/First 9 0 R"),
            (b"Third", 3, b"/Next 7 0 R"),
        )
    )
    body = one_page(
        catalog=b"/Outlines 6 0 R", o6=b"<</First 7 0 R>>", o7=first, o8=nested, o9=again
    )
    assert notes(body) == "Second Third"


LINK = b"/Subtype/Link/A"


@pytest.mark.parametrize(
    ("action", "found"),
    [
        (b"<</S/URI/URI(x)>>", ["x"]),
        (b"<</S/GoTo/D[3 0 R/Fit]/Next<</S/URI/URI(x)>>>>", ["x"]),
        (b"<</S/GoTo/Next[<</S/URI/URI(x)>> 7 0 R]>>", ["x", "y"]),
        (b"<</S/JavaScript/JS(x)/Next<</S/GoTo/Next 7 0 R>>>>", ["y"]),
        (b"<</S/URI/URI(x)/Next<</S/URI/URI(x)>>>>", ["x"]),
        (b"<</S/GoToR/F(x)>>", ["x"]),
        (b"<</S/GoToR/F<</F(x)>>>>", ["x"]),
        (b"<</S/Launch/F<</UF(x)>>>>", ["x"]),
        (b"8 0 R", ["http://h/loop"]),
    ],
)
def test_links_lead_where_their_actions_do(action, found):
    second = b"<</S/URI/URI(y)>>"
    loop = b"<</S/URI/URI(http://h/loop)/Next[8 0 R 8 0 R]>>"
    expected = [url if "/" in url else f"http://h/{url}" for url in found]
    assert urls(annotated(LINK + b" " + action, o7=second, o8=loop)) == expected
    assert urls(annotated(b"/Subtype/Widget/AA<</U %b>>" % action, o7=second, o8=loop)) == expected
    assert urls(one_page(catalog=b"/OpenAction %b" % action, o7=second, o8=loop)) == expected
    outline = one_page(
        catalog=b"/Outlines 6 0 R", o6=b"<</First<</A %b>>>>" % action, o7=second, o8=loop
    )
    assert urls(outline) == expected


def test_links_are_relative_to_the_base_of_the_document():
    body = annotated(LINK + b"<</S/URI/URI(x)/Next<</S/URI/URI(http://o/y)>>>>")
    body = body.replace(b"/Pages 2 0 R", b"/Pages 2 0 R/URI<</Base(http://other/b/)>>")
    assert urls(body) == ["http://o/y", "http://other/b/x"]


# Embedded files.

TEXT = b"the enclosed text"


@pytest.mark.parametrize(
    ("data", "filters"),
    [
        (TEXT, b""),
        (zlib.compress(TEXT), b"/Filter/FlateDecode"),
        (zlib.compress(zlib.compress(TEXT)), b"/Filter[/FlateDecode/FlateDecode]"),
        (base64.a85encode(TEXT) + b"~>", b"/Filter/ASCII85Decode"),
        (base64.a85encode(zlib.compress(TEXT)) + b"~>", b"/Filter[/ASCII85Decode/FlateDecode]"),
        (TEXT.hex().encode() + b">", b"/Filter[/ASCIIHexDecode]"),
    ],
)
def test_an_embedded_file_is_a_part(data, filters):
    page = read(with_file(data, filters))
    assert [(part.name, part.text, part.unread) for part in page.parts] == [
        ("a.txt", TEXT.decode(), "")
    ]
    assert (page.text, page.unread) == ("drawn\na.txt", "")


def test_files_of_pages_annotations_and_name_trees_are_parts_once():
    body = one_page(
        catalog=b"/AF[7 0 R]/Names<</EmbeddedFiles<</Kids[10 0 R 10 0 R]>>>>",
        page=b"/AF[7 0 R]/Annots[<</Subtype/FileAttachment/FS 8 0 R>>]",
        o7=b"<</F(seven.txt)/EF<</F 11 0 R>>>>",
        o8=b"<</F(eight.txt)/EF<</UF 12 0 R>>>>",
        o9=b"<</EF<</F 13 0 R>>>>",
        o10=b"<</Names[(a) 7 0 R (nine.txt) 9 0 R]/Kids[10 0 R]>>",
        **{f"o{number}": stream(b"text %d" % number) for number in (11, 12, 13)},
    )
    page = read(body)
    assert {part.name: part.text for part in page.parts} == {
        "seven.txt": "text 11",
        "nine.txt": "text 13",
        "eight.txt": "text 12",
    }
    assert parts.member("application/pdf", body, "a.pdf", "eight.txt") == b"text 12"


def test_files_of_a_pdf_in_a_zip_are_parts_of_the_zip():
    inner = with_file(with_file(TEXT), name=b"inner.pdf")
    page = parts.read("application/zip", corpus.zipped({"a.pdf": inner}), "http://h/a.zip", None)
    assert [part.name for part in page.parts] == [
        "a.pdf",
        "a.pdf/inner.pdf",
        "a.pdf/inner.pdf/a.txt",
    ]
    assert page.parts[-1].text == TEXT.decode()


@pytest.mark.parametrize(
    ("data", "filters", "outcome"),
    [
        (zlib.compress(b"a" * 2_000_000), b"/Filter/FlateDecode", "too-large"),
        (None, b"/Filter[/FlateDecode/FlateDecode]", "too-large"),
        (zlib.compress(TEXT)[:9], b"/Filter/FlateDecode", "damaged"),
        (b"no such thing", b"/Filter/FlateDecode", "damaged"),
        (b"{}{}", b"/Filter/ASCII85Decode", "damaged"),
        (b"x", b"/Filter/LZWDecode", "no-reader"),
        (b"", b"", "no-text"),
    ],
)
def test_an_embedded_file_that_cannot_be_read_costs_no_text(data, filters, outcome):
    if data is None:
        data = zlib.compress(zlib.compress(b"\0" * 200_000_000))
    page = read(with_file(data, filters))
    assert page.text.startswith("drawn\na.txt")
    assert (page.unread + page.parts[0].unread if page.parts else page.unread).startswith(outcome)


# Odd and hostile files.


def odd() -> bytes:
    return one_page(
        catalog=b"/AcroForm<</Fields[6 0 R]/XFA 9 0 R>>/Outlines 10 0 R/Names<</EmbeddedFiles<<"
        b"/Names[(a.txt) 7 0 R]>>>>",
        page=b"/Annots[6 0 R<</Subtype/Text/Contents(a note)>>]",
        o6=b"<</Subtype/Widget/FT/Tx/V(typed)%b/A<</S/URI/URI(http://h/a)/Next 6 0 R>>>>" % PLACE,
        o7=b"<</F(a.txt)/EF<</F 8 0 R>>>>",
        o8=stream(zlib.compress(TEXT), b"/Filter/FlateDecode"),
        o9=stream(XFA),
        o10=b"<</First<</Title(a title)/Dest[3 0 R/Fit]>>>>",
    )


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"HTTP/1.1 200 OK\r\n\r\n", b"\0" * 1_000])
def test_bytes_before_the_head_cost_nothing(before):
    assert notes(before + odd()) == "typed a note a.txt Xfa data a title"


def test_a_password_of_nothing_opens_a_pdf():
    def saved(**passwords: str) -> bytes:
        out = io.BytesIO()
        with pikepdf.open(io.BytesIO(odd())) as document:
            document.save(out, encryption=pikepdf.Encryption(R=4, **passwords))
        return out.getvalue()

    page = read(saved(owner="x", user=""))
    assert (page.text, page.parts[0].text) == (read(odd()).text, TEXT.decode())
    with pytest.raises(parts.Unread, match="needs a password"):
        read(saved(owner="x", user="y"))


def test_objects_in_object_streams_are_read():
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(odd())) as document:
        document.save(out, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    assert b"a note" not in out.getvalue()
    assert read(out.getvalue()).text == read(odd()).text


def test_an_object_that_is_no_such_thing_costs_no_other_one():
    body = one_page(
        catalog=b"/AcroForm[]/Outlines 3/Names(x)/OpenAction/x/AF<<>>",
        page=b"/AA[]/Annots[null 1 (x) [] 99 0 R<</Subtype 1/Contents<<>>/A 1/AA 2>>"
        b"<</Subtype/Widget/FT/Ch/Opt 1/V 1/Parent 1>><</Subtype/Text/RC(<<)>>"
        b"<</Subtype/Widget/FT/Btn/V/99999/Opt[1]/Ff(x)>><</Subtype/Text/Contents(kept)>>]",
    )
    assert notes(body).endswith("kept")


def test_arrays_that_hold_themselves_are_gone_through_once():
    loop = b"[6 0 R 6 0 R <</T(a)/FT/Tx/V(typed)>>]"
    page = read(one_page(catalog=b"/AcroForm<</Fields 6 0 R>>/OpenAction 6 0 R", o6=loop))
    assert (page.text, page.unread) == ("drawn\ntyped", "")


def test_a_value_that_is_too_large_says_so():
    bomb = stream(zlib.compress(b"a" * 2_000_000), b"/Filter/FlateDecode")
    page = read(with_field(b"/FT/Tx/V 7 0 R", o7=bomb))
    assert (page.text, page.unread.partition(":")[0]) == ("drawn", "too-large")


def test_annotations_have_a_limit(monkeypatch):
    monkeypatch.setattr(pdf_objects, "MAX_OBJECTS", 10)
    page = read(one_page(page=b"/Annots[%b]" % (b"<</Subtype/Text/Contents(n)>>" * 20)))
    assert (page.text, page.unread.partition(":")[0]) == ("drawn\nn", "too-long")


def test_what_qpdf_cannot_open_is_read_all_the_same(monkeypatch):
    def fails(*_args: object, **_options: object) -> None:
        raise pikepdf.PdfError("damaged")

    monkeypatch.setattr(pikepdf, "open", fails)
    page = read(odd())
    assert (page.text, page.unread, page.parts) == ("drawn\na title", "", [])


def test_a_cut_or_overwritten_pdf_ends_in_text_or_an_outcome():
    body = odd()
    for damaged in (
        *(body[: len(body) * tenth // 10] for tenth in range(1, 10)),
        *(corpus.overwritten(body, seed) for seed in range(10)),
    ):
        try:
            page = read(damaged)
        except parts.Unread:
            continue
        assert page.text or not page.unread


def test_a_pdf_that_lost_its_end_or_pages_is_damaged():
    whole = corpus.pdf(["first page", "second page", "third page"])
    page = read(whole[: whole.rfind(b"startxref")])
    assert page.text == (whole_text := "first page\fsecond page\fthird page")
    assert page.unread == "damaged: it is cut off"
    assert read(whole + b"\n<!-- a footer -->" * 99).unread == ""
    assert read(whole + b"\xff\x02" * 50_000).unread == ""
    changed = read(whole + b"9 0 obj\n<</Type/Page>>\nendobj\n")
    assert (changed.text, changed.unread) == (whole_text, "damaged: it is cut off")
    page = read(whole.replace(b"/Type/Page/", b"/Type/Font/", 1))
    assert page.text.split("\f")[1:] == ["second page", "third page"]
    assert page.unread == "damaged: 1 of 3 pages cannot be read"


@pytest.mark.parametrize("font", ["", "ToUnicode", "FontDescriptor"])
def test_damage_in_the_letters_of_a_page_is_not_silent(font):
    """FTP in ASCII mode, or a bad disk, leaves a PDF that opens."""
    drawn = zlib.compress(b"BT /F1 12 Tf 50 700 Td (first page) Tj ET" + b" " * 900)
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(corpus.pdf(["", "second page"]))) as document:
        packed = document.make_stream(b"")
        packed.write(drawn, filter=pikepdf.Name.FlateDecode)
        page = document.pages[0].obj
        page[pikepdf.Name.Contents] = packed
        if font:
            letters = document.make_stream(b"")
            letters.write(drawn, filter=pikepdf.Name.FlateDecode)
            file = pikepdf.Dictionary(FontFile=letters)
            used = {"ToUnicode": letters, "FontDescriptor": file}[font]
            page.Resources.Font.F1[f"/{font}"] = used
            page[pikepdf.Name.Contents] = document.make_stream(zlib.decompress(drawn))
        document.save(out, compress_streams=False)
    whole = out.getvalue()
    assert (read(whole).text, read(whole).unread) == ("first page\fsecond page", "")
    at = whole.index(drawn[:20]) + 9
    page = read(whole[:at] + b"\r\n" + whole[at + 2 :])
    assert page.text.endswith("second page")
    assert page.unread == f"damaged: the text of {1 + bool(font)} of 2 pages is damaged"


@pytest.mark.parametrize("number", [10, 11, 13])
def test_pages_are_read_though_the_table_of_objects_is_overwritten(number):
    whole = corpus.pdf(["first page", "second page"])
    at = whole.rindex(b"xref\n0 ") + len(b"xref\n0 14\n") + 20 * number
    page = read(whole[:at] + b"0000000009" + whole[at + 10 :])
    assert page.text == "first page\fsecond page"
    assert page.unread == "damaged: its table of objects is damaged"
