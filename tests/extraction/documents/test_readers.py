"""Every format is read: text, title, author, date, links; what cannot be read has its outcome."""

import asyncio
import gzip
import io
import lzma
import os
import signal
import tarfile
import warnings
import zipfile
from collections.abc import Iterator

import pytest
from PIL import Image

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.office import spreadsheet
from larmspider.extraction.documents.reading import Unread, date_of
from larmspider.extraction.formats import extractor_for, media_type
from larmspider.extraction.processes import process
from larmspider.extraction.processes.process import ExtractionRefused, Readers
from larmspider.items import Outcome, Page, part_url, split_part
from larmspider.urls.media_types import FORMATS, is_read_apart, type_by_name
from tests.support.documents import corpus
from tests.support.documents.corpus import MODIFIED, SAMPLES, Sample
from tests.support.documents.ole_file import ole

OUTCOMES = tuple(f"{outcome}:" for outcome in Outcome)
TEXTS = ("gz", "bz2", "xz")
"""They hold plain text here, which has no links."""


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    with Readers() as readers:
        yield readers


def read(body: bytes, name: str, readers: Readers, content_type: str = "") -> Page:
    mime = media_type(content_type, body, f"http://h/{name}")
    return readers.read_again(mime, body, f"http://h/{name}")


def each(*names: str):
    return pytest.mark.parametrize(
        "sample", [SAMPLES[name] for name in names or SAMPLES], ids=lambda sample: sample.name
    )


@each()
def test_every_format_is_read(sample, readers):
    page = read(sample.body, f"sample.{sample.name}", readers)
    assert page.unread == ""
    text = {part.name: part.text for part in page.parts}[sample.part] if sample.part else page.text
    assert sample.phrase in text
    assert (page.title, page.author) == (sample.title, sample.author)
    assert page.modified == (MODIFIED if sample.dated else None)
    if sample.name not in TEXTS:
        assert sample.link in [link.url for link in page.links]


@each()
def test_the_content_says_what_it_is(sample):
    """Whatever the server says; text has no signature, so there the name counts."""
    for said in ("", "application/octet-stream", sample.mime):
        assert media_type(said, sample.body, f"/a/sample.{sample.name}") == sample.mime
    if sample.body[:1] not in b"#T[F<B{":
        assert media_type("text/html", sample.body) == sample.mime
        assert media_type("text/plain; charset=utf-8", sample.body, "/x.txt") == sample.mime


@each("pdf", "docx", "pptx", "odt", "eml", "md", "zip")
def test_a_link_has_its_text(sample, readers):
    links = read(sample.body, f"x.{sample.name}", readers).links
    (anchor,) = (link.anchor for link in links if link.url == sample.link)
    assert anchor == ("First of all" if sample.name == "pdf" else "the way")


def test_pages_of_a_pdf_are_parted(readers):
    page = read(SAMPLES["pdf"].body, "x.pdf", readers)
    assert page.text.split("\f") == ["First of all", "nothing", "The pdfword lighthouse"]
    assert page.language == "en-gb"


def test_a_pdf_without_a_title_has_its_largest_letters(readers):
    assert read(corpus.pdf(["Large", "x"]), "x.pdf", readers).title == "Large"


def test_macros_are_no_text(readers):
    page = read(SAMPLES["docm"].body, "sample.docm", readers)
    assert "AutoOpen" not in f"{page.text} {page.title} {page.parts}"


def test_what_was_struck_out_is_no_text(readers):
    assert "struck" not in read(SAMPLES["docx"].body, "x", readers).text


def test_a_relative_link_is_relative_to_the_document(readers):
    assert [link.url for link in read(b"[x](other.md)", "a/b.md", readers).links] == [
        "http://h/a/other.md"
    ]


# Parts.


def test_an_attachment_is_a_part(readers):
    mail = corpus.eml(attachment=SAMPLES["docx"].body, file="rules.docx")
    page = read(mail, "x.eml", readers)
    (part,) = page.parts
    assert (part.name, part.title, part.mime) == (
        "rules.docx",
        "Harbour rules",
        SAMPLES["docx"].mime,
    )
    assert SAMPLES["docx"].phrase in part.text
    assert SAMPLES["docx"].link in [link.url for link in page.links]
    assert [part.text for part in read(SAMPLES["msg"].body, "x", readers).parts] == [
        "enclosed plan"
    ]


def test_archives_in_archives_are_read_three_deep(readers):
    page = read(corpus.bombs()["nested.zip"], "x.zip", readers)
    assert [part.name for part in page.parts] == ["6.zip", "6.zip/5.zip", "6.zip/5.zip/4.zip"]
    deepest = page.parts[-1].unread
    assert deepest == "too-large: documents in documents are read 3 levels deep, not deeper"
    assert page.unread == f"{deepest} (6.zip/5.zip/4.zip)"


def test_an_archive_that_cannot_be_opened_in_an_archive_says_so(readers):
    inner = corpus.zipped({"b.txt": "text of b"})
    body = corpus.zipped({"a.txt": "text of a", "broken.zip": b"PK\3\4" + inner[9:-30]})
    page = read(body, "x.zip", readers)
    assert [(part.name, part.unread.partition(":")[0]) for part in page.parts] == [
        ("a.txt", ""),
        ("broken.zip", "damaged"),
    ]


def test_a_part_that_ends_its_parser_costs_the_others_nothing(readers):
    mail = b"From: a@h\nSubject: x\nMIME-Version: 1.0\n" + b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(2_000)
    )
    body = corpus.zipped({"a.txt": "text of a", "deep.eml": mail, "c.txt": "text of c"})
    parts = read(body, "x.zip", readers).parts
    assert [(part.text, part.unread.partition(":")[0]) for part in parts] == [
        ("text of a", ""),
        ("a@h", "too-large"),
        ("text of c", ""),
    ]


def test_a_tar_file_of_before_posix_is_one(readers):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"word"))
    body = bytearray(file.getvalue())
    body[257:345] = bytes(88)
    body[148:156] = b" " * 8
    body[148:156] = b"%06o\0 " % sum(body[:512])
    for name, said in (("a.tar", "application/x-tar"), ("a", "")):
        assert [part.text for part in read(bytes(body), name, readers, said).parts] == ["word"]
    body[0] ^= 1
    assert read(bytes(body), "a", readers).unread.startswith("binary:")


def test_all_streams_of_an_xz_file_are_read(readers):
    body = lzma.compress(b"one ") + bytes(8) + lzma.compress(b"two") + bytes(4)
    assert read(body, "a.txt.xz", readers).parts[0].text == "one two"
    assert read(body + b"junk", "a.txt.xz", readers).parts[0].text == "one two"
    page = read(body[:-30], "a.txt.xz", readers)
    assert page.unread.startswith("damaged: it cannot be read")
    assert page.parts[0].text.startswith("one")


CHAPTER = '<html xmlns="http://www.w3.org/1999/xhtml"><title/><p>chapter</p></html>'
SPINE = '<package><item id="a" href="a.xhtml"/><spine>%s</spine></package>'


@pytest.mark.parametrize(
    "files",
    [
        {"OPS/book.opf": SPINE % '<itemref idref="a"/>', "OPS/A.XHTML": CHAPTER},
        {"OPS/book.opf": SPINE % "", "OPS/a.xhtml": CHAPTER},
        {
            "meta-inf/container.xml": '<container><rootfile full-path="ops/Book.opf"/></container>',
            "OPS/book.opf": SPINE % '<itemref idref="a"/>',
            "OPS/a.xhtml": CHAPTER,
        },
    ],
    ids=["without container", "without order", "other case"],
)
def test_chapters_are_found_where_a_list_of_a_book_is_wrong(files, readers):
    body = corpus.zipped({"mimetype": "application/epub+zip"} | files)
    page = read(body, "a.epub", readers)
    assert (page.text, page.unread) == ("chapter", "")


def test_what_is_no_archive_says_so(readers):
    page = read(b"\x01\x90\0" + b"\0" * 500, "x.zip", readers, "application/zip")
    assert page.unread == "damaged: it is not an archive"
    page = read(b"MZ\x90\0" + b"\0" * 500, "x.zip", readers, "application/zip")
    assert page.unread.startswith("binary:")


def test_members_of_one_name_are_parts_of_their_own(readers):
    bodies = (b"first", b"second", b"third")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings(action="ignore"):
        for data in bodies:
            archive.writestr("v1.2/readme", data)
        archive.writestr("b.txt", b"other")
    page = read(made.getvalue(), "x.zip", readers)
    names = ["v1.2/readme", "v1.2/readme (2)", "v1.2/readme (3)", "b.txt"]
    assert [part.name for part in page.parts] == names
    for name, data in zip(names, bodies, strict=False):
        arguments = ("application/zip", made.getvalue(), "http://h/x.zip", name)
        assert readers.documents.first.member(*arguments) == data


def test_texts_of_all_parts_have_a_limit(monkeypatch):
    monkeypatch.setattr(parts, "MAX_ALL_TEXT", 10)
    body = corpus.zipped({f"{number}.txt": "123456" for number in range(5)})
    page = parts.read("application/zip", body, "http://h/x.zip", None)
    assert len(page.parts) == 2
    assert page.unread == "too-long: it has more than 10 characters of text"


def test_a_document_without_text_in_an_archive_says_so(readers):
    body = corpus.zipped(
        {"a.pdf": corpus.pdf(["", ""]), "b.png": b"\x89PNG\r\n\x1a\n", "c.txt": "c"}
    )
    unread = [part.unread.partition(":")[0] for part in read(body, "x.zip", readers).parts]
    assert unread == ["no-text", "binary", ""]


def test_pages_without_text_are_no_text(readers):
    """A scan mostly has several."""
    page = read(corpus.pdf(["", "", ""]), "x.pdf", readers)
    assert (page.text, page.unread.partition(":")[0]) == ("", "no-text")


@each("zip", "tar", "tgz", "mbox", "gz")
def test_a_part_can_be_had_by_its_name(sample, readers):
    name = f"sample.{sample.name}"
    got = readers.documents.first.member(sample.mime, sample.body, f"http://h/{name}", sample.part)
    assert sample.phrase.encode() in got
    with pytest.raises(ExtractionRefused, match="holds no"):
        readers.documents.first.member(sample.mime, sample.body, f"http://h/{name}", "other")


def test_one_part_that_cannot_be_read_does_not_cost_the_others(readers):
    body = corpus.zipped({"a.pdf": b"%PDF-1.4 no more", "b.txt": "text of b"})
    a, b = read(body, "x.zip", readers).parts
    assert a.unread.startswith("damaged:")
    assert (b.text, b.unread) == ("text of b", "")


def test_what_programs_leave_beside_files_is_no_part(readers):
    names = ("__MACOSX/._a.txt", "b/._a.txt", "~$plan.docx", ".~lock.a.odt#", "b/Thumbs.db")
    names += (".DS_Store", "b/Desktop.ini", "ehthumbs.db", "__MACOSX/b/c.txt")
    kept = ("a.txt", "b/_a.txt", "b/thumbs.db.txt", "my__MACOSX/a.txt", "~notes.txt")
    body = corpus.zipped(dict.fromkeys((*names, *kept), "text"))
    assert [part.name for part in read(body, "x.zip", readers).parts] == list(kept)


def picture(**options: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (2, 2)).save(out, "JPEG", **options)
    return out.getvalue()


def test_a_picture_without_tags_stays_binary(readers):
    for body in (picture(), b"\0" * 9, b""):
        page = readers.read_again("image/jpeg", body, "http://h/a")
        assert (page.text, page.unread) == ("", "binary: image/jpeg is not a document")
    page = readers.read_again("image/jpeg", picture(comment=b"a boat"), "http://h/a")
    assert (page.mime, page.text, page.unread) == ("image/jpeg", "a boat", "")


# Unreadable documents.


@pytest.mark.parametrize("name", corpus.encrypted())
def test_what_is_encrypted_says_so(name, readers):
    page = read(corpus.encrypted()[name], f"x.{name}", readers, type_by_name(f"x.{name}"))
    assert page.unread.startswith("encrypted:")
    assert "secret" not in page.text or name == "zip"  # its members have names


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.docx", "bomb.gz"])
def test_what_unpacks_to_too_much_says_so(name, readers):
    page = read(corpus.bombs()[name], name, readers)
    assert page.unread.startswith("too-large:")


def test_an_archive_of_too_many_members_has_some_of_them(monkeypatch):
    monkeypatch.setattr(parts, "MAX_MEMBERS", 20)
    body = corpus.zipped({f"{n}.txt": "x" for n in range(30)})
    page = parts.read("application/zip", body, "http://h/x.zip", None)
    assert (len(page.parts), page.unread.partition(":")[0]) == (20, "too-large")


@pytest.mark.parametrize("name", ["laughs.docx", "laughs.xml"])
def test_entities_that_multiply_are_not_expanded(name, readers):
    assert len(read(corpus.bombs()[name], name, readers).text) < 1_000


@pytest.mark.parametrize("name", ["x.xml", "x.docx", "x.odt"])
def test_no_entity_brings_in_a_file_or_a_url(name, readers, tmp_path):
    (tmp_path / "secret").write_text("of this machine")
    documents = corpus.foreign_entities(str(tmp_path / "secret"), "http://127.0.0.1:9/")
    page = read(documents[name], name, readers)
    assert "kept" in page.text
    assert "machine" not in page.text


@pytest.mark.parametrize("body", [b"", b"\0" * 100], ids=["nothing", "zeros"])
@each()
def test_nothing_is_no_document(sample, body, readers):
    page = readers.read_again(sample.mime, body, "http://h/x")
    assert page.unread.startswith(OUTCOMES) or page.text


@each()
def test_a_document_that_is_cut_or_overwritten_has_text_or_an_outcome(sample, readers):
    for body in [
        *(sample.body[: len(sample.body) * part // 5] for part in range(1, 5)),
        *(corpus.overwritten(sample.body, seed) for seed in range(3)),
    ]:
        page = readers.read_again(sample.mime, body, "http://h/x")
        assert page.unread.startswith(OUTCOMES) or page.text


def test_old_office_needs_a_second_reader(readers):
    body = corpus.ole({"WordDocument": b"x" * 5_000})
    assert document_type(body) == "application/msword"
    assert read(body, "x.doc", readers).unread.startswith("no-reader:")


@pytest.mark.parametrize(
    ("body", "name", "said"),
    [
        (ole({"VisioDocument": b"x"}), "x.vsd", ""),
        (ole({"VisioDocument": b"x"}), "x.vsd", "application/vnd.visio"),
        (corpus.zipped({"Index/Document.iwa": b"x", "preview.jpg": b"x"}), "x.pages", ""),
        (b"\0\1\0\0Standard ACE DB\0", "x.accdb", ""),
        (b"\xffWPC...", "x.wpd", "application/vnd.wordperfect"),
        (b"PK\7\x08PK\3\4" + b"x" * 100, "x.z01", ""),
        (b"x" * 99 + b"\xffPK\5\6\1\0" + b"\0" * 16, "x.zip", "application/zip"),
    ],
)
def test_a_known_format_that_nothing_reads_says_so(body, name, said, readers):
    assert read(body, name, readers, said).unread.startswith("no-reader:")


def test_excel_5_is_read_where_its_letters_are_bytes(readers):
    page = read(corpus.excel5("Größe der Liegeplätze".encode("cp1252"), 1252), "x.xls", readers)
    assert (page.text, page.unread) == ("Berths Größe der Liegeplätze", "")
    page = read(corpus.excel5("漢字のデータ".encode("cp932"), 932), "x.xls", readers)
    assert (page.text, page.unread.partition(":")[0]) == ("", "no-reader")


@pytest.mark.parametrize("name", ["a.docx", "a.pdf", "a.zip", "a.xls", "a.7z", "a.eml"])
@pytest.mark.parametrize("said", ["", "application/octet-stream", "type"])
def test_a_document_of_0_bytes_has_an_outcome(name, said, readers):
    content_type = type_by_name(name) if said == "type" else said
    assert read(b"", name, readers, content_type).unread == "no-text: it is empty"


def test_a_page_in_place_of_a_pdf_is_a_page():
    assert media_type("application/pdf", b"<!doctype html><title>Log in</title>") == "text/html"


def test_a_document_that_kills_its_reader_costs_that_document(readers, monkeypatch):
    ask = readers.documents.first.ask

    def killed(request, body):
        os.kill(readers.documents.first.started().pid, signal.SIGKILL)
        return ask(request, body)

    read(SAMPLES["pdf"].body, "x.pdf", readers)
    pid = readers.documents.first.child.pid
    monkeypatch.setattr(readers.documents.first, "ask", killed)
    unread = read(SAMPLES["pdf"].body * 100, "x.pdf", readers).unread
    assert unread.startswith("reader-died:") or unread == ""  # it may have ended before
    monkeypatch.undo()
    assert read(SAMPLES["pdf"].body, "x.pdf", readers).title == "Harbour rules"
    assert readers.documents.first.child.pid != pid


def test_the_process_of_documents_is_replaced_from_time_to_time(monkeypatch):
    monkeypatch.setattr(process, "RECYCLED", 2)
    with Readers() as readers:
        pids = []
        for _ in range(4):
            read(b"a,b", "x.csv", readers)
            pids.append(readers.documents.first.child and readers.documents.first.child.pid)
        assert pids[1] is pids[3] is None
        assert pids[0] != pids[2]


def test_a_document_that_takes_too_long_or_too_much_memory_is_refused():
    with Readers(document_secs=0.1) as readers:
        body = corpus.zipped({f"{n}.csv": b"http://h/ " * 100_000 for n in range(8)})
        assert read(body, "x.zip", readers).unread.startswith(("too-long", "too-large"))
    with Readers(document_bytes=1 << 26) as readers:
        body = b"[%s]" % (b'"x" ' * 6_000_000)
        assert read(body, "x.json", readers).unread.startswith(("too-large", "reader-died"))


# The list of formats.


@pytest.mark.parametrize(
    ("outer", "mime"),
    [("Workbook", "application/vnd.ms-excel"), ("WordDocument", "application/msword")],
)
def test_a_document_in_a_document_does_not_say_what_that_is(outer, mime):
    inner = {f"MBD01/{name}": b"x" for name in ("WordDocument", "Workbook", "PowerPoint Document")}
    body = ole({**inner, outer: b"x"})
    assert document_type(body) == mime
    damaged = document_type(ole({outer: b"x"})[:-600])
    assert damaged == mime


def test_all_formats_but_pages_and_text_are_read_apart():
    here = {module.rpartition(".")[2] for mime, _, module in FORMATS if not is_read_apart(mime)}
    assert here == {"html", "xhtml", "plain_text"}


def test_each_format_has_its_reader():
    assert all(extractor_for(mime) for mime, _, _ in FORMATS)


def test_an_extension_means_one_format():
    names = [name for _, names, _ in FORMATS for name in names.split()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-01-01T12:34:56Z", MODIFIED),
        ("D:20240101133456+01'00'", MODIFIED),
        ("D:20240101123456Z", MODIFIED),
        ("Mon, 01 Jan 2024 13:34:56 +0100", MODIFIED),
        ("D:2024", 1704067200.0),
        ("D:20249999", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates(text, seconds):
    assert date_of(text) == seconds


def test_a_reader_refuses_by_an_outcome():
    with pytest.raises(Unread) as refused:
        parts.read("application/pdf", b"%PDF-1.7", "http://h/", None)
    assert refused.value.unread == "damaged: it is cut off"
    assert isinstance(SAMPLES["pdf"], Sample)


def tar_of(files: dict[str, bytes], encoding: str = "utf-8") -> bytes:
    made = io.BytesIO()
    with tarfile.open(
        fileobj=made, mode="w", format=tarfile.GNU_FORMAT, encoding=encoding
    ) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def test_a_member_whose_name_is_no_text_is_a_part(readers):
    body = tar_of({"gr\xfc\xdfe.txt": b"hello", "ok.txt": b"fine"}, "latin-1")
    page = read(body, "x.tar", readers)
    assert [part.name for part in page.parts] == ["gr\ufffd\ufffde.txt", "ok.txt"]
    name = page.parts[0].name
    assert split_part(part_url("http://h/x.tar", name))[1] == name
    assert (
        readers.documents.first.member("application/x-tar", body, "http://h/x.tar", name)
        == b"hello"
    )


def test_documents_that_are_stored_in_a_zip_are_its_parts(readers):
    """Neither they nor an unpacked one, which the list of names shows, make it a document."""
    docx = SAMPLES["docx"].body
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("readme.txt", "hello")
        archive.writestr("report.docx", docx)
        archive.writestr("new/[Content_Types].xml", "<x/>")
        archive.writestr("new/word/document.xml", "<x/>")
    page = read(made.getvalue(), "x.zip", readers)
    assert page.unread == ""
    texts = {part.name: part.text for part in page.parts}
    assert texts["readme.txt"] == "hello"
    assert SAMPLES["docx"].phrase in texts["report.docx"]


def sparse(name: str, size: int, *stretches: tuple[int, bytes]) -> bytes:
    """A member of a tar file in GNU's old form: up to four stretches between its holes."""

    def field(number: int) -> bytes:
        return tarfile.itn(number, 12, tarfile.GNU_FORMAT)

    stored = b"".join(data for _, data in stretches)
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    block[156:157] = tarfile.GNUTYPE_SPARSE
    block[124:136] = b"%011o\0" % len(stored)
    block[386:482] = bytes(96)
    for number, (at, data) in enumerate(stretches or [(0, b"")]):
        here = 386 + 24 * number
        block[here : here + 24] = field(at) + field(len(data))
    block[483:495] = field(size)
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 8 * 32 + sum(block[156:]))
    return bytes(block) + stored + bytes(-len(stored) % tarfile.BLOCKSIZE)


def test_what_sparse_files_leave_out_is_not_unpacked():
    """400 of them with 60 MB each are an archive of 4 KB; here it is ten of 16 MB."""
    body = gzip.compress(sparse("f.txt", 16 << 20) * 10 + bytes(1_024))
    page = parts.read("application/gzip", body, "http://h/x.tar.gz", None)
    assert {part.size for part in page.parts} == {0}
    assert page.unread.startswith(f"{Outcome.TOO_LARGE}: it unpacks to 16,777,216 bytes with")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_lies_between_the_holes_of_a_large_file_is_read(pack):
    holes = sparse("log.txt", 1 << 40, (0, b"first words\n"), (1 << 39, b"last words"))
    body = pack(holes + corpus.tar({"b.txt": b"behind"}))
    page = parts.read(document_type(body), body, "http://h/x.tar", None)
    assert [part.text for part in page.parts] == ["first words last words", "behind"]
    assert page.parts[0].unread.startswith("too-large: it unpacks to 1,099,511,627,776 bytes")
    assert page.parts[1].unread == ""


def test_a_damaged_chapter_of_a_book_costs_the_others_nothing(readers):
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/>'
        '<item id="b" href="b.xhtml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/>'
        "</spine></package>"
    )
    chapters = {f"{name}.xhtml": f"<html><p>chapter {name}</p></html>" for name in "ab"}
    files = {"mimetype": "application/epub+zip", "c.opf": opf, **chapters}
    body = corpus.zipped(files, stored=tuple(files)).replace(b"chapter a", b"chapter x")
    page = read(body, "x.epub", readers)
    assert ("chapter b" in page.text, page.unread.partition(":")[0]) == (True, "damaged")


@pytest.mark.parametrize("name", ["docx", "pptx"])
def test_damaged_properties_do_not_cost_a_document_its_text(name, readers):
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(SAMPLES[name].body)) as whole:
        properties = whole.read("docProps/core.xml")
        with zipfile.ZipFile(made, "w") as stored:
            for info in whole.infolist():
                stored.writestr(info.filename, whole.read(info))
    body = made.getvalue().replace(properties, properties[:-2] + b"x>")
    page = read(body, f"x.{name}", readers)
    assert page.unread.startswith("damaged: docProps/core.xml cannot be read: ")
    assert SAMPLES[name].phrase in page.text


def test_a_library_that_panics_costs_one_part(monkeypatch):
    class PanicException(BaseException):
        pass

    def panic(*_: object) -> None:
        raise PanicException

    monkeypatch.setattr(spreadsheet, "_add_cells", panic)
    body = corpus.zipped({"a.txt": "hello", "b.xls": SAMPLES["xls"].body})
    page = parts.read("application/zip", body, "http://h/x.zip", None)
    assert [(part.name, part.unread.partition(":")[0]) for part in page.parts] == [
        ("a.txt", ""),
        ("b.xls", Outcome.DAMAGED),
    ]


def test_a_table_of_html_that_is_called_a_spreadsheet_is_a_page():
    assert media_type("application/vnd.ms-excel", b"<table><tr><td>1") == "text/html"


def test_scans_that_cannot_be_read_cost_no_typed_text(monkeypatch):
    """Neither in a crawl nor when its page is read again."""
    helpers = process.Helpers(ocr="eng", ocr_secs=1.0)
    body = corpus.pdf(["typed words", ""])

    def refuse(*_: object) -> Page:
        raise ExtractionRefused(f"{Outcome.READER_DIED}: of a test")

    async def refused(*_: object) -> Page:
        return refuse()

    with Readers(helpers=helpers) as readers:
        monkeypatch.setattr(readers.scans, "read", refused)
        monkeypatch.setattr(readers.scans, "read_now", refuse)
        again = readers.read_again("application/pdf", body, "http://h/x.pdf")
        first = asyncio.run(readers.read("application/pdf", body, "http://h/x.pdf", ""))
    for page in (first, again):
        assert "typed words" in page.text
        assert page.unread == f"{Outcome.READER_DIED}: of a test"
