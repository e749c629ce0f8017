"""The pass over metadata, on real files, with the search of the index as a witness."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.access.file_rights import FileRights
from larmspider.access.rights import Document, mark_of
from larmspider.access.rules import Rules
from larmspider.access.sent import Sent
from larmspider.access.sources import Sources
from larmspider.index.access import Access
from larmspider.index.writer import IndexWriter
from larmspider.items import Page, Part
from larmspider.search.searcher import Searcher
from larmspider.urls.file_urls import FileRoots, url_of

_ANYBODY = frozenset({"everyone", "authenticated", "uid:9999"})
_HR = frozenset({"everyone", "authenticated", "group:hr"})


class _Crawl:
    """An index of the files of a folder, and of two web pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.share = folder / "share"
        for name in ("a", "b", "c"):
            self.file(f"hr/{name}.txt")
        self.file("open/a.txt")
        self.writer = IndexWriter(folder / "index", collects=True)
        self.searcher = Searcher.open(folder / "index")
        self.roots = FileRoots([os.fsencode(self.share)])
        for path in sorted(self.share.rglob("*.txt")):
            self.add(path)
        for url in ("http://wiki.example/hr/a", "http://wiki.example/b"):
            self.writer.add(Page(url, text="canary", mime="text/html", body=url.encode()))
        self.writer.commit()

    def file(self, name: str) -> Path:
        path = self.share / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("canary")
        path.chmod(0o644)
        path.parent.chmod(0o755)
        return path

    def add(self, path: Path) -> None:
        url = url_of(os.fsencode(path))
        page = Page(url, text=f"canary {path.name}", mime="text/plain", body=url.encode())
        page.parts = [Part("inner.txt", "text/plain", text="canary inside", digest=url)]
        self.writer.add(page)

    def read(self, path: Path) -> None:
        """As a visit of the crawl does."""
        self.add(path)
        url, found = url_of(os.fsencode(path)), path.stat()
        self.writer.access.give(url, FileRights(self.roots).access_of(Document(url)))
        self.writer.access.note_read(url, mark_of(found.st_mtime_ns, found.st_size))
        self.writer.commit()

    def renew(self, **rules: list[str]) -> object:
        sources = Sources(Rules.of({f"/{name}/*": who for name, who in rules.items()}),
                          Sent(), self.roots)  # fmt: skip
        return self.writer.renew_access(sources)

    def seen(self, reader: frozenset[str] = _ANYBODY) -> set[str]:
        hits = self.searcher.seen_by(Access(("file://",), (), reader)).search("canary")
        urls = {hit.url for hit in hits.hits}
        assert hits.total == len(urls)
        found = {url.removeprefix(url_of(os.fsencode(self.share))) for url in urls}
        parts = {url for url in found if "#!/" in url}
        assert {url.partition("#")[0] for url in parts} == {one for one in found if ".txt" in one
                                                            and "#" not in one}  # fmt: skip
        return found - parts


@pytest.fixture
def crawl() -> Iterator[_Crawl]:
    """In a folder that everybody may enter: another pytest closes the folder above tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="rights-", dir="/tmp"))
    folder.chmod(0o755)
    found = _Crawl(folder)
    yield found
    found.writer.close()
    shutil.rmtree(folder)


_WEB = {"http://wiki.example/hr/a", "http://wiki.example/b"}
_HR_FILES = {"/hr/a.txt", "/hr/b.txt", "/hr/c.txt"}


def test_files_are_for_operators_until_the_first_pass(crawl: _Crawl) -> None:
    assert crawl.seen() == _WEB
    assert crawl.searcher.search("canary").total == 10
    found = crawl.writer.renew_access(Sources(roots=crawl.roots))
    assert (found.files, found.moved, found.unread) == (4, 4, 0)
    assert crawl.seen() == _WEB | _HR_FILES | {"/open/a.txt"}
    assert crawl.writer.renew_access(Sources(roots=crawl.roots)).moved == 0


def test_a_right_that_was_taken_away_is_gone(crawl: _Crawl) -> None:
    sources = Sources(roots=crawl.roots)
    crawl.writer.renew_access(sources)
    (crawl.share / "hr").chmod(0o750)
    found = crawl.writer.renew_access(sources)
    assert (found.rows, found.moved) == (1, 0)  # a folder is one row, and no document is written
    assert crawl.seen() == _WEB | {"/open/a.txt"}
    (crawl.share / "hr").chmod(0o755)
    crawl.writer.renew_access(sources)
    for path in (crawl.share / "hr").iterdir():
        path.chmod(0o600)
    found = crawl.writer.renew_access(sources)
    assert (found.rows, found.moved) == (1, 0)  # all files alike
    assert crawl.seen() == _WEB | {"/open/a.txt"}
    (crawl.share / "hr" / "b.txt").chmod(0o644)
    found = crawl.writer.renew_access(sources)
    assert (found.rows, found.moved) == (0, 1)  # this file differs from the others
    assert crawl.seen() == _WEB | {"/open/a.txt", "/hr/b.txt"}
    (crawl.share / "hr" / "b.txt").chmod(0o600)
    crawl.writer.renew_access(sources)
    assert crawl.seen() == _WEB | {"/open/a.txt"}


def test_files_that_are_gone_are_seen_by_operators(crawl: _Crawl) -> None:
    sources = Sources(roots=crawl.roots)
    crawl.writer.renew_access(sources)
    (crawl.share / "hr").rename(crawl.share / "staff")
    found = crawl.writer.renew_access(sources)
    assert found.unread == 3
    assert sources.problems.number == 3
    assert "No such file" in sources.problems.first[0]
    assert crawl.seen() == _WEB | {"/open/a.txt"}
    (crawl.share / "staff").rename(crawl.share / "hr")
    crawl.writer.renew_access(sources)
    assert crawl.seen() == _WEB | _HR_FILES | {"/open/a.txt"}


def test_a_share_that_is_not_mounted_changes_nothing(crawl: _Crawl) -> None:
    sources = Sources(roots=crawl.roots)
    crawl.writer.renew_access(sources)
    crawl.share.rename(crawl.folder / "away")
    found = crawl.writer.renew_access(sources)
    assert found.unmounted == [str(crawl.share)]
    assert crawl.seen() == _WEB | _HR_FILES | {"/open/a.txt"}


@pytest.mark.parametrize(("old", "new"), [(0o600, 0o644), (0o644, 0o600), (0o640, 0o604)])
def test_a_file_that_another_one_has_replaced_is_hidden_until_it_is_read(
    crawl: _Crawl, old: int, new: int
) -> None:
    path, sources = crawl.share / "hr" / "b.txt", Sources(roots=crawl.roots)
    path.chmod(old)
    for one in crawl.share.rglob("*.txt"):
        crawl.read(one)
    other = crawl.file("hr/other.tmp")
    other.write_text("canary, but another text")
    other.chmod(new)
    other.rename(path)
    for _ in range(2):
        found = crawl.writer.renew_access(sources)
        assert found.replaced == 1
        assert crawl.seen() == _WEB | {"/open/a.txt", "/hr/a.txt", "/hr/c.txt"}
    crawl.read(path)
    assert crawl.writer.renew_access(sources).replaced == 0
    assert ("/hr/b.txt" in crawl.seen()) == bool(new & 4)


def test_a_file_that_was_edited_stays_until_its_rights_change_too(crawl: _Crawl) -> None:
    path, sources = crawl.share / "hr" / "b.txt", Sources(roots=crawl.roots)
    everything = _WEB | _HR_FILES | {"/open/a.txt"}
    for one in crawl.share.rglob("*.txt"):
        crawl.read(one)
    path.chmod(0o600)
    assert crawl.writer.renew_access(sources).replaced == 0
    path.chmod(0o644)
    assert crawl.writer.renew_access(sources).replaced == 0
    assert crawl.seen() == everything  # the contents are the same
    path.write_text("canary, and a new sentence")
    assert crawl.writer.renew_access(sources).replaced == 0
    assert crawl.seen() == everything
    path.chmod(0o604)
    assert crawl.writer.renew_access(sources).replaced == 1
    assert crawl.seen() == everything - {"/hr/b.txt"}


def test_a_folder_that_another_one_has_replaced_opens_no_old_file(crawl: _Crawl) -> None:
    share, sources = crawl.share, Sources(roots=crawl.roots)
    crawl.file("hr/pay/deep/d.txt")
    (share / "hr").chmod(0o700)
    for one in share.rglob("*.txt"):
        crawl.read(one)
    assert crawl.seen() == _WEB | {"/open/a.txt"}
    shutil.copytree(share / "hr", share / "new")
    for one in (share / "new").rglob("*.txt"):
        one.write_text("harmless")
    (share / "new").chmod(0o755)
    (share / "hr").rename(crawl.folder / "gone")
    (share / "new").rename(share / "hr")
    for _ in range(2):
        assert crawl.writer.renew_access(sources).replaced == 4
        assert crawl.seen() == _WEB | {"/open/a.txt"}
    crawl.read(share / "hr" / "pay" / "deep" / "d.txt")
    crawl.writer.renew_access(sources)
    assert crawl.seen() == _WEB | {"/open/a.txt", "/hr/pay/deep/d.txt"}


def test_rules_come_and_go(crawl: _Crawl) -> None:
    crawl.renew()
    crawl.renew(hr=["group:hr"])  # "/hr/*" fits the web page, and no file
    everything = _WEB | _HR_FILES | {"/open/a.txt"}
    assert crawl.seen() == everything - {"http://wiki.example/hr/a"}
    assert crawl.seen(_HR) == everything
    crawl.renew(hr=["group:board"])
    assert crawl.seen(_HR) == everything - {"http://wiki.example/hr/a"}
    crawl.renew(hr=["everyone"])
    assert crawl.seen() == everything
    crawl.renew(hr=["group:hr"])
    assert crawl.seen() == everything - {"http://wiki.example/hr/a"}
    crawl.renew()
    assert crawl.seen() == everything


def test_link_texts_of_a_page_with_a_list_leave_the_others(crawl: _Crawl) -> None:
    here, there = "http://wiki.example/hr/a", "http://wiki.example/b"
    crawl.writer.add_anchors(here, {(there, "kanarienvogel")})
    crawl.writer.refresh_all_anchors()
    nobody = crawl.searcher.seen_by(Access((), (), _ANYBODY))
    assert nobody.search("kanarienvogel").total == 1
    crawl.renew(hr=["group:hr"])
    assert nobody.search("kanarienvogel").total == 0
    assert crawl.searcher.search("kanarienvogel").total == 0


def test_a_killed_pass_begins_again(crawl: _Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = Sources(roots=crawl.roots)
    crawl.writer.renew_access(sources)
    (crawl.share / "hr" / "b.txt").chmod(0o600)
    monkeypatch.setattr(crawl.writer, "commit", lambda *_: None)  # killed before Tantivy's commit
    crawl.writer.renew_access(sources)
    assert "/hr/b.txt" in crawl.seen()
    crawl.writer._closed = True  # no goodbye
    del crawl.writer._writer
    crawl.writer.anchors.close()
    crawl.writer = IndexWriter(crawl.folder / "index", collects=True)
    assert crawl.writer.access.moved
    crawl.writer.renew_access(sources)
    assert "/hr/b.txt" not in crawl.seen()
    assert "/hr/a.txt" in crawl.seen()


def test_a_pass_looks_at_thousands_of_files_a_second(tmp_path: Path) -> None:
    """At least 5,000 a CPU second."""
    share = tmp_path / "share"
    share.mkdir()
    names = [share / f"{number}" for number in range(2_000)]
    for path in names:
        path.touch()
    sources = Sources(roots=FileRoots([os.fsencode(share)]))
    from larmspider.access.renewal import renew
    from larmspider.access.table import AccessWriter

    urls = [url_of(os.fsencode(path)) for path in names]
    table = AccessWriter(tmp_path)
    renew(table, sources, lambda _: urls)
    began = time.thread_time()
    found = renew(table, sources, lambda _: urls)
    assert found.files == 2_000
    assert time.thread_time() - began < 2_000 / 5_000
    assert len(table.slots) < 20
