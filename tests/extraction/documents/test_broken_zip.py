"""Documents in zip files that are cut off or overwritten: what is left of them is read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from larmspider.extraction.documents import broken_zip, parts, tika
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.reading import CUT_OFF, Unread
from larmspider.items import Page
from tests.support.documents import corpus
from tests.support.documents.corpus import SAMPLES

LINES = [f"line {number} of the harbour" for number in range(9_000)]
OF_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx() -> bytes:
    """A docx of 9,000 paragraphs."""
    paragraphs = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in LINES)
    document = f"<w:document xmlns:w='{OF_WORD}'><w:body>{paragraphs}</w:body></w:document>"
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": document})


def zipped(files: dict[str, str], *, streamed: bool = False) -> bytes:
    out = io.BytesIO()
    if streamed:  # sizes stand behind the members
        out.seekable = lambda: False  # type: ignore[method-assign]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def read(body: bytes, name: str) -> Page:
    mime = document_type(body, name)
    try:
        return parts.read(mime, body, f"http://h/{name}", None)
    except Unread as refused:
        page = refused.page or Page("")
        page.unread = refused.unread
        return page


def overwritten(body: bytes, at: int) -> bytes:
    return body[:at] + b"\xff" * 8 + body[at + 8 :]


@pytest.mark.parametrize(
    ("damaged", "least"),
    [
        (lambda body: body[: len(body) // 2], 4_000),
        (lambda body: body[:-30], 9_000),
        (lambda body: overwritten(body, len(body) // 2), 3_000),
        (lambda body: overwritten(body, body.rfind(b"PK\1\2")), 9_000),
    ],
    ids=["cut in half", "without the end of its list", "overwritten", "with a damaged list"],
)
def test_text_before_the_damage_is_read(damaged: Callable[[bytes], bytes], least: int) -> None:
    page = read(damaged(docx()), "a.docx")
    assert len(set(LINES) & set(page.text.replace("harbour ", "harbour\n").split("\n"))) >= least
    assert page.unread.startswith("damaged: ")


@pytest.mark.parametrize("name", ["odt", "pptx", "xlsx", "epub", "zip"])
def test_a_file_without_its_list_says_so_and_is_read(name: str) -> None:
    sample = SAMPLES[name]
    whole, cut = (
        read(body, f"a.{name}")
        for body in (sample.body, sample.body[: sample.body.rfind(b"PK\1\2")])
    )
    assert cut.text.split()[:3] == whole.text.split()[:3] != []
    assert cut.unread == "damaged: the zip file cannot be read: File is not a zip file"


@pytest.mark.parametrize("streamed", [False, True])
def test_members_before_the_cut_are_parts(streamed: bool) -> None:
    files = {f"{number}.txt": f"member {number} " * 50 for number in range(10)}
    body = zipped(files, streamed=streamed)
    page = read(body[: body.find(b"7.txt")], "a.zip")
    assert [part.text.partition(" member")[0] for part in page.parts] == [
        f"member {number}" for number in range(7)
    ]
    assert page.unread.startswith("damaged: ")


def test_a_list_is_made_of_heads_that_lie() -> None:
    body = zipped({"a.txt": "one", "b.txt": "two"})
    at = body.find(b"PK\3\4", 1)
    lying = body[: at + 18] + b"\xff\xff\xff\x7f" * 2 + body[at + 26 : body.find(b"PK\1\2")]
    page = read(lying, "a.zip")
    assert [part.text for part in page.parts] == ["one", "two"]
    with pytest.raises(zipfile.BadZipFile):
        broken_zip.with_list(b"PK\3\4 no member")


def test_a_second_reader_leaves_a_broken_file_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tika, "_read", lambda *_: (Page("", text="half of it"), iter(())))
    first = Page("", unread="damaged: the zip file cannot be read")
    mime = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert tika.helped(mime, corpus.zipped({"a": "b"})[:-9], first).unread == first.unread
    assert tika.helped(mime, corpus.zipped({"a": "b"}), first).unread == ""
    cut = Page("", unread=f"damaged: {CUT_OFF}")
    assert tika.helped("application/pdf", b"%PDF-1.4", cut).unread == cut.unread
    assert tika.helped(mime, corpus.ole({"Book": b"x"}), first).unread == ""
