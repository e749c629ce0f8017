"""The text that a reader had read of a document before its end is kept, for any end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from larmspider.extraction.documents import parts, reading
from larmspider.extraction.documents.mails import mail
from larmspider.extraction.documents.office import spreadsheet
from larmspider.extraction.formats import media_type
from larmspider.extraction.processes import progress
from larmspider.extraction.processes.notes import Notes
from larmspider.extraction.processes.process import Readers
from larmspider.items import Page
from tests.support.documents import corpus

SLOW = b"<p>" + b"<i>" * 20_000 + b"</u>" * 1_000_000  # seconds
LATE = "too-long: takes longer than 30 s"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
HUGE = (
    '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
)
"""Two cells of a sheet that declares one: calamine asks for 400 GB for what lies between."""


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    with Readers() as readers:
        yield readers


def read(readers: Readers, body: bytes, name: str) -> Page:
    url = f"http://{name.replace('.', '-')}/{name}"  # a host each: failures in a row shorten limits
    return readers.read_again(media_type("", body, url), body, url)


def read_until(
    readers: Readers, noted: bytes, body: bytes, name: str, number: int = signal.SIGPROF
) -> Page:
    """The Page of a document whose reader ends by the signal of the CPU limit, once it has
    made a note with the bytes ``noted``."""
    done, notes = threading.Event(), readers.documents.first._notes
    assert notes is not None

    def kill() -> None:
        while not done.is_set() and noted not in notes.read():
            time.sleep(0.002)
        if (child := readers.documents.first.child) is not None:
            os.kill(child.pid, number)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        return read(readers, body, name)
    finally:
        done.set()
        killing.join()


def workbook(*sheets: str) -> bytes:
    kind, numbers = corpus._R, range(1, len(sheets) + 1)
    listed = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="s{n}"/>' for n in numbers)
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    targets = "".join(
        f'<Relationship Id="s{n}" Type="{kind}/worksheet" Target="worksheets/s{n}.xml"/>'
        for n in numbers
    )
    return corpus.zipped(
        {
            "[Content_Types].xml": corpus._TYPES,
            "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="w"'
            f' Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "docProps/core.xml": corpus._CORE,
            "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{kind}"><sheets>{listed}'
            "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">{targets}'
            "</Relationships>",
        }
        | {
            f"xl/worksheets/s{n}.xml": f'<worksheet xmlns="{MAIN}"><dimension ref="A1"/>'
            f"<sheetData>{rows}</sheetData></worksheet>"
            for n, rows in enumerate(sheets, 1)
        }
    )


def test_a_mail_keeps_its_headers_and_first_parts(readers: Readers) -> None:
    whole = corpus.eml(attachment=b"first enclosed", file="a.txt").rstrip()
    end = whole.rindex(b"--==")
    boundary = whole[end:].removesuffix(b"--")
    slow = b"\nContent-Type: text/html\nContent-Disposition: attachment; filename=b.html\n\n" + SLOW
    body = whole[:end] + boundary + slow + b"\n" + whole[end:]
    page = read_until(readers, b"b.html", body, "x.eml")
    assert page.unread == LATE
    assert (page.title, page.author) == ("Harbour rules", "Ada Pilot <ada@h.example>")
    assert page.modified == corpus.MODIFIED
    assert "crew@h.example The emlword lighthouse" in page.text
    assert corpus.LINKED.format(name="eml") in [link.url for link in page.links]
    assert [(part.name, part.text, part.unread) for part in page.parts] == [
        ("a.txt", "first enclosed", ""),
        ("b.html", "", LATE),
    ]


HEAD = b"Subject: Harbour rules\nFrom: Ada <ada@h>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"


def nested(depth: int) -> bytes:
    """A mail of nested parts, with a text in the middle."""
    lines = [HEAD + b"MIME-Version: 1.0\n"]
    for number in range(depth):
        kind = b"Content-Type: multipart/mixed; boundary=b%d\n\n" % number
        lines += kind, b"--b%d\n" % number
    return b"".join([*lines, b"Content-Type: text/plain\n\nthe innermost\n"])


def test_a_mail_of_many_parts_in_each_other_keeps_its_headers() -> None:
    """Python's parser raises RecursionError from 900 on, and nothing of the mail was left."""
    deep = parts.read("message/rfc822", nested(100), "http://h/x.eml", None)
    assert (deep.unread, deep.text) == ("", "Ada <ada@h> the innermost")
    page = parts.read("message/rfc822", nested(2_000), "http://h/x.eml", None)
    assert page.unread == "too-large: it has more than 200 nested parts"
    assert (page.title, page.author, page.text) == ("Harbour rules", "Ada <ada@h>", "Ada <ada@h>")
    assert page.modified == 1_704_067_200


def test_a_mail_keeps_its_first_parts_where_the_next_one_is_a_mail_of_many() -> None:
    inner = b"\n--b\nContent-Type: message/rfc822\n\n" + nested(2_000)
    first = b"\n--b\nContent-Disposition: attachment; filename=a.txt\n\nfirst enclosed"
    body = HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\na text" + first + inner
    page = parts.read("message/rfc822", body, "http://h/x.eml", None)
    assert page.unread == "too-large: it has more than 200 nested parts"
    assert page.text == "Ada <ada@h> a text"
    found = [(part.name, part.text) for part in page.parts]
    assert found == [("a.txt", "first enclosed"), ("2.eml", "Ada <ada@h>")]


@pytest.mark.parametrize(
    "slow",
    [
        b"Content-Type: multipart/mixed" + b"".join(b"; a*%d*=x" % n for n in range(20_000)),
        b"MIME-Version: " + b"(" * 20_000,
        b"Content-Type: multipart/mixed; boundary=b\n" + b"\n--b\n\nx" * 100_000,
    ],
    ids=["a header", "a comment", "many parts"],
)
def test_the_headers_of_a_mail_are_kept_before_the_rest_is_parsed(
    monkeypatch: pytest.MonkeyPatch, slow: bytes
) -> None:
    """The notes have them when the parser begins, which may take all the time that there is."""
    noted: list[str] = []
    monkeypatch.setattr(progress, "is_kept", lambda: True)
    monkeypatch.setattr(progress, "about", lambda *about: noted.extend(about[:2]))
    monkeypatch.setattr(progress, "text", noted.append)
    monkeypatch.setattr(progress, "links", noted.append)

    def parse(_body: bytes) -> None:
        assert noted[:3] == ["Harbour rules", "Ada <ada@h>", "Ada <ada@h>\n"]
        raise MemoryError

    monkeypatch.setattr(mail, "_parsed", parse)
    with pytest.raises(MemoryError):
        mail.extract(HEAD + slow, "http://h/x.eml", None)


def test_a_long_header_of_a_mail_is_read_in_part() -> None:
    """A million characters of addresses took 30 s, after which nothing was left."""
    body = HEAD + b"Cc: " + b"crew@h, " * 100_000 + b"\n\na text"
    begun = time.process_time()
    page = parts.read("message/rfc822", body, "http://h/x.eml", None)
    assert time.process_time() < begun + 3
    assert page.text.startswith("Ada <ada@h> crew@h, crew@h")
    assert page.text.endswith(" a text")


def test_an_archive_keeps_its_first_members(readers: Readers) -> None:
    """Also what was read of the member in which the reader ends."""
    slow = b"Subject: b\nFrom: b@h\nTo: c@h\nContent-Type: text/html\n\n" + SLOW
    files = {"a.docx": corpus.SAMPLES["docx"].body, "b.eml": slow, "c.txt": "never reached"}
    body = corpus.zipped(files, stored=("b.eml",))
    page = read_until(readers, b"c@h", body, "x.zip")
    first, second = page.parts
    assert corpus.SAMPLES["docx"].phrase in first.text
    assert corpus.SAMPLES["docx"].link in [link.url for link in page.links]
    assert (second.name, second.title, second.text) == ("b.eml", "b", "b@h c@h")
    assert page.unread == second.unread == LATE
    assert page.text == "a.docx b.eml"


def test_a_workbook_keeps_its_first_sheets(readers: Readers) -> None:
    """1 KB that aborts the process, or raises a MemoryError in it."""
    text = '<row r="1"><c r="A1" t="inlineStr"><is><t>first sheet</t></is></c></row>'
    page = read(readers, workbook(text, HUGE, text), "x.xlsx")
    assert page.unread.startswith(("reader-died: ", "too-large: "))
    assert (page.title, page.author) == ("Harbour rules", "Ada Pilot")
    assert page.text.startswith("S1 first sheet")


def test_a_pdf_keeps_its_first_pages(readers: Readers) -> None:
    """They stay parted."""
    body = corpus.pdf(["page one", "", *(f"page {n} " + "x" * 3_000 for n in range(3, 200))])
    page = read_until(readers, b"page 3", body, "x.pdf")
    assert page.unread == LATE
    pages = page.text.split("\f")
    assert pages[:2] == ["page one", ""]
    assert pages[2].startswith("page 3 ")
    assert len(pages) < 199


def test_the_limit_of_cpu_and_a_crash_leave_what_was_read() -> None:
    """And the next document has nothing of it."""
    body = corpus.zipped({"a.csv": "a,b", "b.html": SLOW}, stored=("b.html",))
    with Readers() as readers:
        read(readers, corpus.zipped({"a.csv": "a,b", "b.html": "<p>"}), "warm.zip")
        readers.documents.seconds = 0.1
        page = read(readers, body, "x.zip")
        assert page.unread == "too-long: takes longer than 0.1 s"
        readers.documents.seconds = 30.0
        assert page.parts[0].text == "a,b"
        page = read_until(readers, b"a,b", body, "x.zip", signal.SIGSEGV)
        assert page.unread == "reader-died: ended the extraction process with status -11"
        assert page.parts[0].text == "a,b"
        readers.documents.seconds = 0.001  # ends before any note is made
        assert read(readers, b"Subject: x\n\n" + b"x" * 100_000, "x.eml").title == ""


def test_a_reader_that_raises_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a part and as a whole document."""

    def fail(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(spreadsheet, "_shown", fail)
    text = '<row r="1"><c r="A1"><v>1</v></c></row>'
    body = corpus.zipped({"a.xlsx": workbook(text)})
    (part,) = parts.read("application/zip", body, "http://h/x.zip", None).parts
    assert (part.title, part.text) == ("Harbour rules", "S1")
    assert part.unread == "reader-died: raised RecursionError('too deep')"


def test_a_mail_of_too_much_text_keeps_the_first_and_its_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It had neither."""
    monkeypatch.setattr(reading, "MAX_TEXT", 1_000)
    mail = corpus.eml(attachment=b"enclosed", file="a.txt")
    body = mail.replace(b"emlword", b"emlword " + b"much text " * 1_000)
    page = parts.read("message/rfc822", body, "http://h/x.eml", None)
    assert page.unread.startswith("too-long: has more than 1,000 characters")
    assert "emlword much text" in page.text
    assert [part.text for part in page.parts] == ["enclosed"]


def test_notes_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MAX_BYTES", 60)
    notes = Notes()
    progress.begin(notes.fd)
    for word in ("one ", "two \ud800", "x" * 100, "three"):
        progress.text(word)
    page = notes.so_far("http://h/", "too-long: x")
    assert page is not None
    assert (page.text, page.unread) == ("one two \ud800", "too-long: x")
    assert notes.so_far("http://h/", "") is None
    progress.begin(-1)
    notes.close()
