"""A crawl of documents: each is found by its text, and a bad one costs nothing but its text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pypdfium2
import pytest

from larmspider.items import part_url
from larmspider.search.query import Filters
from larmspider.search.searcher import Searcher
from tests.support.crawling import FAST, crawl, records, scrapy
from tests.support.documents import corpus
from tests.support.documents.corpus import SAMPLES
from tests.support.servers.scripted import Route, ScriptedServer

pytestmark = pytest.mark.acceptance

HTML = {"Content-Type": "text/html; charset=utf-8"}
PDF = {"Content-Type": "application/pdf"}
LIMIT = 200_000
BAD = {
    "/locked.pdf": (corpus.encrypted()["pdf"], "encrypted"),
    "/cut.docx": (SAMPLES["docx"].body[:300], "damaged"),
    "/scan.pdf": (corpus.pdf([""]), "no-text"),
    "/bomb.gz": (corpus.bombs()["bomb.gz"], "too-large"),
    "/huge.pdf": (corpus.pdf(["huge"]).ljust(LIMIT + 1), "too-large"),
}


def site() -> dict[str, Route]:
    replies: dict[str, Route] = {
        f"/d/sample.{name}": (200, {"Content-Type": sample.mime}, sample.body)
        for name, sample in SAMPLES.items()
    }
    for path, (body, _) in BAD.items():
        replies[path] = (200, {"Content-Type": "application/octet-stream"}, body)
    replies["/medium.pdf"] = (200, PDF, corpus.pdf(["mediumword"]).ljust(LIMIT))
    replies["/large.html"] = (200, HTML, b"x" * LIMIT)
    names = {path: f"the {path[1:4]} file" for path in replies}
    links = "".join(f'<a href="{path}">{text}</a> ' for path, text in names.items())
    return {**replies, "/": (200, HTML, links.encode())}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("documents")
    with ScriptedServer(site()) as server:
        limits = {"DOWNLOAD_MAXSIZE": "100000", "LARM_DOCUMENT_MAXSIZE_BYTES": str(LIMIT)}
        ran = crawl(server.url("/"), folder, **limits)
        assert ran.status == 0
        (folder / "said").write_text(ran.out + ran.err, "utf-8")
        yield folder, server.url("")


def test_a_phrase_of_each_format_is_found(crawled: tuple[Path, str]) -> None:
    folder, origin = crawled
    searcher = Searcher.open(folder / "crawl" / "index")
    for name, sample in SAMPLES.items():
        (hit,) = searcher.search(f'"{sample.phrase}"').hits
        document = f"{origin}/d/sample.{name}"
        assert hit.url == (part_url(document, sample.part) if sample.part else document)
        assert hit.container == (document if sample.part else "")
        assert hit.author == sample.author or sample.part
    mails = searcher.search("harbour", filters=Filters.of(kinds=["mail"]))
    assert {hit.kind for hit in mails.hits} == {"mail"}


def test_a_hit_in_a_pdf_names_its_page(crawled: tuple[Path, str]) -> None:
    folder, origin = crawled
    done = scrapy("search", "--json", "--type", "pdf", "pdfword", cwd=folder)
    (hit,) = json.loads(done.out)["hits"]
    assert (hit["page"], hit["target"]) == (3, f"{origin}/d/sample.pdf#page=3")
    assert hit["author"] == "Ada Pilot"
    assert "#page=3  (page 3)" in scrapy("search", "pdfword", cwd=folder).out


def test_every_link_of_a_document_is_in_the_log(crawled: tuple[Path, str]) -> None:
    folder, origin = crawled
    found = {
        (line["from-page"], line["to-page"]) for line in records(folder / "crawl" / "links.log")
    }
    for name, sample in SAMPLES.items():
        if name not in ("xls", "gz", "bz2", "xz"):
            assert (f"{origin}/d/sample.{name}", sample.link) in found


def test_what_cannot_be_read_is_stored_found_and_explained(crawled: tuple[Path, str]) -> None:
    folder, origin = crawled
    said = {line["url"]: line["message"] for line in records(folder / "crawl" / "fetch.log")}
    searcher = Searcher.open(folder / "crawl" / "index")
    for path, (_, outcome) in BAD.items():
        assert said[origin + path].startswith(f"{outcome}: ")
        hits = {hit.url: hit for hit in searcher.search(f'"the {path[1:4]} file"').hits}
        assert hits[origin + path].snippet.text.startswith(f"{outcome}: ")
    explained = scrapy("explain", f"{origin}/locked.pdf", cwd=folder).out
    assert "encrypted: needs a password" in explained
    assert searcher.search('"needs a password"').total == 1
    (hit,) = searcher.search('"too large to read"').hits
    assert (hit.url, hit.size, hit.kind) == (origin + "/huge.pdf", 0, "pdf")


def test_a_document_may_be_larger_than_a_page(crawled: tuple[Path, str]) -> None:
    folder, origin = crawled
    (hit,) = Searcher.open(folder / "crawl" / "index").search("mediumword").hits
    assert (hit.url, hit.size) == (origin + "/medium.pdf", LIMIT)
    failed = {line["url"] for line in records(folder / "crawl" / "fetch.log")
              if line["result"] == "too-big"}  # fmt: skip
    assert failed == {origin + "/large.html"}


def test_the_summary_counts_what_was_not_read(crawled: tuple[Path, str]) -> None:
    ran = (crawled[0] / "said").read_text("utf-8")
    assert "unread      5 documents (too-large 2, " in ran


def test_a_part_is_printed_by_its_name(crawled: tuple[Path, str]) -> None:
    folder, origin = crawled
    part = f"{origin}/d/sample.zip#!/port/rules.md"
    assert SAMPLES["zip"].phrase in scrapy("page", part, cwd=folder).out
    missing = scrapy("page", f"{origin}/d/sample.zip#!/no", cwd=folder)
    assert missing.status != 0
    assert "it holds no no" in missing.err


def test_an_index_made_anew_has_the_parts(crawled: tuple[Path, str]) -> None:
    folder, _ = crawled
    assert scrapy("reindex", "--from-page-files", cwd=folder).status == 0
    searcher = Searcher.open(folder / "crawl" / "index")
    for sample in SAMPLES.values():
        assert searcher.search(f'"{sample.phrase}"').total == 1


ERLANG = Path("/usr/share/doc/erlang-doc")


def test_pages_of_real_pdfs_are_found(tmp_path: Path) -> None:
    """Erlang's 38 PDFs: a word leads to those that explain it, at a page that has it."""
    if not ERLANG.exists():
        pytest.skip("needs Debian's erlang-doc")
    settings = FAST | {"LARM_FILE_ROOTS": str(ERLANG), "LARM_WEB": "no"}
    ran = scrapy(
        *("crawl", "intranet", "-a", f"start={ERLANG.as_uri()}/", "-a", r"restrict=.*(/|\.pdf)"),
        *(f"-s{name}={value}" for name, value in settings.items()),
        cwd=tmp_path,
    )
    assert ran.status == 0, ran.err
    names = {path.name for path in ERLANG.rglob("*.pdf")}
    stored = {page["url"].rpartition("/")[2] for page in records(tmp_path / "crawl" / "store.log")}
    assert names <= stored
    hits = scrapy("search", "--json", "--type", "pdf", "supervisor", cwd=tmp_path).json["hits"]
    titles = [hit["title"] for hit in hits]
    assert {"Erlang/OTP System Documentation", "STDLIB"} <= set(titles[:5])
    for hit in hits:
        path, page = hit["url"].removeprefix("file://"), hit["page"]
        with closing(pypdfium2.PdfDocument(path)) as document:
            text = document[page - 1].get_textpage().get_text_range()
        assert "supervisor" in text.lower(), hit["url"]
