"""larmspider/fetch/file_handler.py: files and folders below the roots, and nothing else."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.utils.test import get_crawler

from larmspider.extraction.pages.html import extract
from larmspider.extraction.pages.sitemap import listed
from larmspider.fetch import errors, file_handler
from larmspider.fetch.file_handler import Answer, FileHandler, FileReader
from larmspider.fetch.limits import Limits
from larmspider.fetch.source_handler import Found, Row, answer_of, folder_page
from larmspider.requests import TOO_LARGE, VALIDATORS
from larmspider.urls.file_urls import FileRoots, url_of

NOTHING = {"If-None-Match": "", "If-Modified-Since": ""}
LIMITS = Limits(max_bytes=1000, document_bytes=2000)


@pytest.fixture
def share(tmp_path: Path) -> Path:
    share = tmp_path / "share"
    (share / "plans").mkdir(parents=True)
    (share / "a.txt").write_text("the harbour")
    (share / "plans" / "b.txt").write_text("a plan")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.txt").write_text("secret")
    return share


def reader_of(*roots: Path) -> FileReader:
    return FileReader(FileRoots([os.fsencode(root) for root in roots]), LIMITS)


def url(path: Path | bytes, *, folder: bool = False) -> str:
    return url_of(path if isinstance(path, bytes) else os.fsencode(path)) + "/" * folder


def read(share: Path, path: Path | bytes, *, folder: bool = False, **asked: str) -> Answer:
    conditions = {name.replace("_", "-"): value for name, value in asked.items()}
    return reader_of(share).read(url(path, folder=folder), NOTHING | conditions)


def links(answer: Answer, base: str) -> dict[str, str]:
    page = extract(answer.body, base, "text/html; charset=utf-8")
    return {link.anchor: link.url for link in page.links}


def test_a_file_has_its_bytes_and_validators(share: Path) -> None:
    os.utime(share / "a.txt", (0, 1_700_000_000))
    answer = read(share, share / "a.txt")
    assert (answer.status, answer.body) == (200, b"the harbour")
    assert answer.headers["Last-Modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert read(share, share / "a.txt", If_None_Match=answer.headers["ETag"]).status == 304
    (share / "a.txt").write_text("the harbour, again")
    again = read(share, share / "a.txt", If_None_Match=answer.headers["ETag"])
    assert (again.status, again.body) == (200, b"the harbour, again")


def test_a_time_alone_is_a_condition_too(share: Path) -> None:
    os.utime(share / "a.txt", (0, 1_700_000_000))
    for moment, status in ((1_700_000_000, 304), (1_699_999_999, 200)):
        since = formatdate(moment, usegmt=True)
        assert read(share, share / "a.txt", If_Modified_Since=since).status == status
    assert read(share, share / "a.txt", If_Modified_Since="yesterday").status == 200


def test_a_folder_lists_files_and_folders_with_their_times(share: Path) -> None:
    os.utime(share / "a.txt", (0, 1_700_000_000))
    answer = read(share, share, folder=True)
    base = url(share, folder=True)
    assert links(answer, base) == {"a.txt": base + "a.txt", "plans/": base + "plans/"}
    assert answer.headers["X-Robots-Tag"] == "noindex"
    page = extract(answer.body, base, "text/html; charset=utf-8")
    page.url = base
    rows = {row.url: row.changed for row in listed(page, 1_900_000_000)}
    assert 0 <= rows[base + "a.txt"] - 1_700_000_000 <= 15 * 3600


def test_names_are_bytes(share: Path) -> None:
    odd = [b"caf\xe9.txt", b"a?b#c&<d>.txt", b"x" * 251 + b"\xff\xfe.x", "ä b\n\u202e.txt".encode()]
    for name in odd:
        Path(os.fsdecode(os.fsencode(share) + b"/" + name)).write_bytes(name)
    found = links(read(share, share, folder=True), url(share, folder=True)).values()
    bodies = {answer.body for one in found if (answer := reader_of(share).read(one, NOTHING)).body}
    assert bodies >= set(odd)


def test_a_large_folder_is_listed_in_parts(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_handler, "PART", 7)
    names = {f"n{number:02}" for number in range(20)}
    for name in names:
        (share / "plans" / name).touch()
    reader, at, found, parts = reader_of(share), url(share / "plans", folder=True), set(), 0
    while at:
        listed_here = links(reader.read(at, NOTHING), at)
        at = listed_here.pop("more", "")
        assert len(listed_here) <= 7
        found |= set(listed_here)
        parts += 1
    assert (found, parts) == (names | {"b.txt"}, 3)
    assert len(reader._folders) == 1
    assert reader.read(url(share / "plans", folder=True) + "?C=N", NOTHING).status == 404


def test_names_of_large_folders_are_kept_up_to_a_limit(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all folders together; the latest ones."""
    monkeypatch.setattr(file_handler, "PART", 7)
    monkeypatch.setattr(file_handler, "LARGEST", 30)
    folders = [share / f"large{number}" for number in range(4)]
    for folder in folders:
        folder.mkdir()
        for number in range(10):
            (folder / f"n{number}").touch()
    reader = reader_of(share)
    for folder in (*folders, folders[3]):
        reader.read(url(folder, folder=True), NOTHING)
    assert list(reader._folders) == [os.fsencode(folder) for folder in folders[1:]]


def test_links_inside_of_the_roots_lead_to_where_the_file_lies(share: Path) -> None:
    (share / "link.txt").symlink_to("plans/b.txt")
    (share / "again").symlink_to("plans")
    found = links(read(share, share, folder=True), url(share, folder=True))
    assert found["link.txt"] == url(share / "plans/b.txt")
    assert found["again/"] == url(share / "plans", folder=True)
    answer = read(share, share / "again" / "b.txt")
    assert (answer.status, answer.headers["Location"]) == (301, url(share / "plans/b.txt"))
    assert read(share, share / "plans").headers["Location"] == url(share / "plans", folder=True)


def test_a_root_may_be_a_link_itself(share: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.symlink_to(share)
    found = links(read(root, root, folder=True), url(root, folder=True))
    assert found["a.txt"] == url(root / "a.txt")
    assert read(root, root / "a.txt").body == b"the harbour"


def test_nothing_outside_of_the_roots_is_read(share: Path, tmp_path: Path) -> None:
    (share / "out").symlink_to(tmp_path / "secret")
    (share / "s.txt").symlink_to(tmp_path / "secret" / "s.txt")
    (share / "nowhere").symlink_to("gone")
    found = links(read(share, share, folder=True), url(share, folder=True))
    assert set(found) == {"a.txt", "plans/"}
    base = url(share, folder=True)
    for path in ("out/s.txt", "s.txt", "..%2Fsecret%2Fs.txt", "%2E%2E%2fsecret%2fs.txt"):
        answer = reader_of(share).read(base + path, NOTHING)
        assert (answer.status, answer.body) == (403, b""), path
    assert read(share, tmp_path / "secret" / "s.txt").status == 403
    assert read(share, b"/etc/passwd").status == 403
    assert reader_of().read(url(share / "a.txt"), NOTHING).status == 403


def test_a_link_that_takes_the_place_of_a_file_is_not_followed(
    share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the opening."""
    reader, opened = reader_of(share), os.open

    def late(path: bytes, flags: int) -> int:
        (share / "plans").rename(tmp_path / "away")
        (share / "plans").symlink_to(tmp_path / "secret")
        (tmp_path / "secret" / "b.txt").hardlink_to(tmp_path / "away" / "b.txt")
        return opened(path, flags)

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(errors.ConnectionLost, match="another file has taken its place"):
        reader.read(url(share / "plans" / "b.txt"), NOTHING)


def test_a_link_that_takes_the_place_of_a_folder_is_not_listed(
    share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, looked, folder = reader_of(share), os.lstat, share / "plans"
    looks = 0

    def swapped(path: bytes, **how: int) -> os.stat_result:
        nonlocal looks
        found = looked(path, **how)
        looks += path == os.fsencode(folder)
        if looks == 2 and not folder.is_symlink():  # the first is by realpath
            folder.rename(tmp_path / "away")
            folder.symlink_to(tmp_path / "secret")
        return found

    monkeypatch.setattr(os, "lstat", swapped)
    with pytest.raises(errors.ConnectionLost, match="another file has taken its place"):
        reader.read(url(folder) + "/", NOTHING)


def test_pipes_sockets_and_devices_are_left_alone(share: Path) -> None:
    os.mkfifo(share / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(share)
        listening.bind("socket")
        (share / "null").symlink_to("/dev/null")
        found = links(read(share, share, folder=True), url(share, folder=True))
        assert set(found) == {"a.txt", "plans/"}
        for name in ("pipe", "socket", "null"):
            assert read(share, share / name).status == 403


@pytest.fixture(autouse=True)
def _stay() -> Iterator[None]:
    before = Path.cwd()
    yield
    os.chdir(before)


def test_what_is_gone_is_404_while_its_root_is_there(share: Path) -> None:
    assert read(share, share / "gone.txt").status == 404
    assert read(share, share / "a.txt" / "b").status == 404
    assert read(share, share / ("n" * 256)).status == 404
    assert reader_of(share).read(url(share, folder=True) + "a%00b", NOTHING).status == 404


def test_a_share_that_is_not_mounted_says_nothing_about_its_files(share: Path) -> None:
    share.rename(share.with_name("away"))
    with pytest.raises(errors.Unmounted, match=r"share: No such file.*is the share mounted\?"):
        read(share, share / "a.txt")
    share.mkdir()
    with pytest.raises(errors.Unmounted, match=r"share is empty: is the share mounted\?"):
        read(share, share / "a.txt")
    with pytest.raises(errors.Unmounted, match=r"share is empty"):
        read(share, share, folder=True)


def test_an_error_of_the_file_server_is_no_answer(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(path: bytes) -> os.stat_result:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(os, "lstat", stale)
    with pytest.raises(errors.ConnectionLost, match="Stale file handle"):
        read(share, share / "a.txt")


def test_sizes_are_limited_by_kind(share: Path) -> None:
    (share / "long.txt").write_bytes(b"x" * 1001)
    with pytest.raises(errors.TooBig, match="more than 1000 bytes"):
        read(share, share / "long.txt")
    (share / "long.pdf").write_bytes(b"x" * 2000)
    assert len(read(share, share / "long.pdf").body) == 2000
    (share / "long.pdf").write_bytes(b"x" * 2001)
    answer = read(share, share / "long.pdf")
    assert (answer.status, answer.body, answer.flags) == (200, b"", [TOO_LARGE])


def test_the_handler_answers_as_a_server_does(share: Path) -> None:
    crawler = get_crawler(settings_dict={"LARM_FILE_ROOTS": [str(share)]})
    handler = FileHandler.from_crawler(crawler)
    request = Request(url(share / "a.txt") + "#top")

    async def ask() -> None:
        response = await handler.download_request(request)
        assert (response.url, response.body) == (url(share / "a.txt"), b"the harbour")
        again = request.replace(headers=request.meta[VALIDATORS])
        assert (await handler.download_request(again)).status == 304
        await handler.close()

    asyncio.run(ask())


def test_a_file_server_that_hangs_costs_the_time_of_a_fetch(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    crawler = get_crawler(settings_dict={"LARM_FILE_ROOTS": [str(share)]})
    handler = FileHandler.from_crawler(crawler)
    monkeypatch.setattr(handler.reader, "read", lambda *_: go.wait(60))
    request = Request(url(share / "a.txt"), meta={"download_timeout": 0.05})
    with pytest.raises(errors.TimedOut, match="DOWNLOAD_TIMEOUT"):
        asyncio.run(handler.download_request(request))
    go.set()


@pytest.mark.parametrize("when", [-(10**12), 253_402_300_800, 10**12, 7 * 10**16])
def test_a_time_beyond_the_year_9999_is_the_nearest_date(when: int) -> None:
    """A broken clock has written it; the document and its folder are read anyway."""
    found = Found(3, when * 10**9, lambda _: [b"abc"])
    answer = answer_of(found, "file:///srv/a.txt", NOTHING, LIMITS, None)
    assert (answer.status, answer.body) == (200, b"abc")
    assert answer.headers["Last-Modified"][-17:-13] in ("9999", "0001")
    assert folder_page("srv", [Row("file:///srv/a.txt", "a.txt", when, 3)]).status == 200
