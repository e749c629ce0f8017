"""Sizes that an archive claims lift no limit and cost no text: only read bytes count."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from random import Random

import pytest

from larmspider.extraction.documents import archives, parts
from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.mails import msg
from larmspider.extraction.documents.parts import Budget
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Page
from tests.extraction.test_progress import workbook
from tests.support.documents import corpus

CRC, PACKED, UNPACKED = 16, 20, 24  # in an entry of the list of a zip file
XLSX = corpus.SAMPLES["xlsx"].mime
ROW = '<row r="1"><c r="A1" t="inlineStr"><is><t>first sheet</t></is></c></row>'


def lying(body: bytes, name: str, at: int, value: int) -> bytes:
    entry = body.rfind(name.encode()) - 46
    assert body.startswith(b"PK\x01\x02", entry)
    return body[: entry + at] + struct.pack("<I", value) + body[entry + at + 4 :]


def texts(page: Page) -> list[tuple[str, str, str]]:
    return [(part.name, part.text, part.unread.partition(":")[0]) for part in page.parts]


def claiming(tar: bytes, size: int) -> bytes:
    """Its first member says that it has ``size`` bytes."""
    head = bytearray(tar[:512])
    head[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)  # type: ignore[attr-defined]
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + 8 * 32 + sum(head[156:]))
    return bytes(head) + tar[512:]


@pytest.mark.parametrize("claim", [8 << 30, 1 << 40, -1, -512, -1_000_000])
@pytest.mark.parametrize("packed", [True, False])
def test_the_size_of_a_member_of_a_tar_lifts_no_limit(claim: int, packed: bool) -> None:
    """It was given back to what may be unpacked: 8 GB. The text of all members is read."""
    bomb = gzip.compress(bytes(3_000_000))
    tar = corpus.tar({"a.txt": b"hello", "b.txt": b"second", "bomb.gz": bomb})
    lies = claiming(tar, claim)
    body, mime = (
        (gzip.compress(lies), "application/gzip") if packed else (lies, "application/x-tar")
    )
    page = parts.read(mime, body, "http://h/x.tar", None)
    assert page.unread.startswith("too-large: it unpacks to more than ")
    assert texts(page)[:2] == [("a.txt", "hello", "damaged"), ("b.txt", "second", "")]


def test_a_tar_inside_of_a_gzip_is_counted_once_and_as_read() -> None:
    budget, data = Budget(100_000), bytes(900_000)
    tar = corpus.tar({"a": data, "b": data})
    left = budget.bytes
    list(archives.members(gzip.compress(tar), "x.tar.gz", budget))
    assert budget.bytes == left - len(tar)


@pytest.mark.parametrize(
    ("at", "value"),
    [(UNPACKED, 5), (UNPACKED, 4_000_000_000), (PACKED, 5), (PACKED, 0), (PACKED, 4_000_000_000)],
)
def test_wrong_sizes_of_a_zip_cost_no_text(at: int, value: int) -> None:
    """Where the checksum is right, nothing is damaged."""
    body = corpus.zipped({"a.txt": "hello " * 100, "b.txt": "second"})
    page = parts.read("application/zip", lying(body, "a.txt", at, value), "http://h/x.zip", None)
    assert texts(page) == [("a.txt", ("hello " * 100).strip(), ""), ("b.txt", "second", "")]
    docx = lying(corpus.SAMPLES["docx"].body, "word/document.xml", at, value)
    found = parts.read(corpus.SAMPLES["docx"].mime, docx, "http://h/x.docx", None)
    assert corpus.SAMPLES["docx"].phrase in found.text
    assert found.unread == ""


def test_a_member_that_is_damaged_keeps_its_beginning() -> None:
    body = lying(corpus.zipped({"a.txt": "hello", "b.txt": "second"}), "a.txt", CRC, 1)
    page = parts.read("application/zip", body, "http://h/x.zip", None)
    assert texts(page) == [("a.txt", "hello", "damaged"), ("b.txt", "second", "")]
    assert page.parts[0].digest == ""


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body[:-4] + b"\xff\xff\xff\xff",
        lambda body: body[:-8] + b"\0\0\0\0" + body[-4:],
        lambda body: body[:-20],
        lambda body: body + b"junk",
    ],
    ids=["length", "checksum", "cut", "junk"],
)
def test_a_gzip_whose_end_is_wrong_keeps_what_was_read(spoil) -> None:  # type: ignore[no-untyped-def]
    words = "hello " + Random(1).randbytes(5_000).hex()
    body = spoil(gzip.compress(words.encode()))
    (part,) = parts.read("application/gzip", body, "http://h/a.txt.gz", None).parts
    assert part.text.startswith("hello ")
    assert part.unread.startswith("damaged: ")
    tar = corpus.tar({"a.txt": b"first", "b.txt": words.encode()})
    page = parts.read("application/gzip", spoil(gzip.compress(tar)), "http://h/a.tgz", None)
    assert page.parts[0].text == "first"
    assert page.unread.startswith("damaged: ")


def test_a_member_that_is_too_large_keeps_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_MEMBER_BYTES", 100_000)
    body = corpus.zipped({"a.txt": "hello " * 30_000, "b.txt": "second"})
    page = parts.read("application/zip", body, "http://h/x.zip", None)
    assert texts(page)[1] == ("b.txt", "second", "")
    assert page.parts[0].text.startswith("hello hello")
    assert page.parts[0].unread == "too-large: it unpacks to more than 100,000 bytes"
    monkeypatch.setattr(parts, "FREE_BYTES", 70_000)
    monkeypatch.setattr(parts, "MAX_RATIO", 1)
    page = parts.read("application/zip", body, "http://h/x.zip", None)
    assert page.parts[0].text.startswith("hello hello")
    assert page.unread == "too-large: it unpacks to more than 70,000 bytes"


def test_streams_of_a_mail_that_share_their_bytes_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any number of streams of an OLE file may name the same sectors."""
    body = corpus.SAMPLES["msg"].body
    budget = Budget(len(body))
    list(msg.members(body, "x.msg", budget))
    assert budget.bytes < budget.most
    budget.bytes = 3
    with pytest.raises(Unread, match="unpacks to more than"):
        list(msg.members(body, "x.msg", budget))


@pytest.mark.parametrize("name", ["xl/worksheets/s1.xml", "xl/workbook.xml"])
@pytest.mark.parametrize(("at", "value"), [(UNPACKED, 4_000_000_000), (UNPACKED, 3), (PACKED, 7)])
def test_wrong_sizes_of_a_workbook_cost_no_text(name: str, at: int, value: int) -> None:
    """A library that trusts them gets a repacked file."""
    page = parts.read(XLSX, lying(workbook(ROW), name, at, value), "http://h/x.xlsx", None)
    assert (page.text, page.unread) == ("S1 first sheet", "")


@pytest.mark.parametrize(
    "said", ['count="4000000000" uniqueCount="4000000000"', "uniqueCount='4000000000'"]
)
def test_a_number_of_strings_is_no_claim_on_memory(said: str) -> None:
    """400 bytes asked for 96 GB: the reader died."""
    made = io.BytesIO(workbook('<row r="1"><c r="A1" t="s"><v>0</v></c></row>'))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(made, "a") as book:
        book.writestr(
            "xl/sharedStrings.xml", f'<sst xmlns="{main}" {said}><si><t>shared</t></si></sst>'
        )
    body = ZipReader(made.getvalue()).checked(made.getvalue())
    with zipfile.ZipFile(io.BytesIO(body)) as book:
        assert b"4000000000" not in book.read("xl/sharedStrings.xml")
    page = parts.read(XLSX, body, "http://h/x.xlsx", None)
    assert (page.text.split()[0], page.unread) == ("S1", "")


def test_an_honest_workbook_is_left_as_it_is() -> None:
    body = corpus.SAMPLES["xlsx"].body
    assert ZipReader(body).checked(body) is body
