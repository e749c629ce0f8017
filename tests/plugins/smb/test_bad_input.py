"""smb:// and what servers, shares and names may do wrong: an outcome each, and nothing is lost."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.access.connected import AwayError
from larmspider.access.lists import OPERATORS_ONLY, AccessList
from larmspider.extraction.pages.html import extract
from larmspider.fetch import errors
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import read_sites_file
from larmspider.fetch.source_handler import Answer
from larmspider.plugins.smb import connector
from larmspider.plugins.smb.connector import LINKS, SmbConnector
from larmspider.requests import TOO_LARGE
from tests.support.servers.samba import Samba, needs_samba

pytestmark = [pytest.mark.acceptance, needs_samba]

NOTHING = {"If-None-Match": "", "If-Modified-Since": ""}
LIMITS = Limits(max_bytes=200_000, document_bytes=300_000, total_secs=20.0)
BASE = "smb://127.0.0.1/share/"
LINKS_OF_DFS = {
    "Straße": r"127.0.0.1\data\Größe",
    "two": r"127.0.0.9\data,127.0.0.1\data",
    "away": r"127.0.0.9\data",
    "no-share": r"127.0.0.1\none",
    "no-folder": r"127.0.0.1\data\none",
    "empty": r"127.0.0.1\empty",
    "itself": r"127.0.0.1\dfs",
    "second": r"127.0.0.1\dfs2",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Samba]:
    folder = Path(tempfile.mkdtemp(prefix="smb-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "private").mkdir(mode=0o755)
    (folder / "private" / "a.txt").write_text("a")
    for name in ("dfs", "dfs2", "empty"):
        (folder / name).mkdir(mode=0o755)
    (folder / "dfs" / "here.txt").write_text("here")
    (folder / "private" / "Größe").mkdir(mode=0o755)
    (folder / "private" / "Größe" / "b.txt").write_text("b")
    for name, target in LINKS_OF_DFS.items():
        (folder / "dfs" / name).symlink_to(f"msdfs:{target}")
    (folder / "dfs2" / "back").symlink_to(r"msdfs:127.0.0.1\dfs")
    shares = {
        "dfs": f" path = {folder / 'dfs'}\n msdfs root = yes",
        "dfs2": f" path = {folder / 'dfs2'}\n msdfs root = yes",
        "data": f" path = {folder / 'private'}",
        "empty": f" path = {folder / 'empty'}",
        "private": f" path = {folder / 'private'}\n valid users = ben",
        "stubs": f" path = {folder / 'share'}\n vfs objects = offline acl_xattr",
        "lost": f" path = {folder / 'lost'}",
    }
    with Samba(folder, shares) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture
def reader(server: Samba) -> Iterator[SmbConnector]:
    LINKS.close()
    (server.share / "a.txt").write_text("harbour")
    with server.inside():
        yield SmbConnector(read_sites_file(server.sites(server.folder)), LIMITS)
        LINKS.close()


def by(server: Samba, user: str, password: str = "pw") -> SmbConnector:
    return SmbConnector(read_sites_file(server.sites(server.folder, user, password)), LIMITS)


def read(reader: SmbConnector, url: str, **asked: str) -> Answer:
    return reader.read(url, NOTHING | {name.replace("_", "-"): one for name, one in asked.items()})


def names_in(answer: Answer, base: str = BASE) -> list[str]:
    page = extract(answer.body, base, "text/html; charset=utf-8")
    return [link.url.removeprefix(base) for link in page.links]


def test_servers_that_are_away(reader: SmbConnector) -> None:
    for url, kind in (
        ("smb://127.0.0.1:4/share/", "refused"),
        ("smb://nowhere.invalid/share/", "dns"),
        ("smb://127.0.0.1/none/", "unmounted"),
        ("smb://127.0.0.1/lost/", "unmounted"),
    ):
        with pytest.raises(Exception, match=r"127|nowhere") as raised:
            read(reader, url)
        assert errors.kind_of(raised.value) == kind
        assert not reader.is_mounted(url)


def test_a_server_that_says_nothing_costs_the_time_limit(reader: SmbConnector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        quick = SmbConnector(reader.sites, Limits(connect_secs=1.0, total_secs=1.0))
        began = time.monotonic()
        with pytest.raises((errors.TimedOut, errors.ConnectionLost)):
            read(quick, f"smb://127.0.0.1:{silent.getsockname()[1]}/share/")
        assert time.monotonic() - began < 10


def test_a_share_that_is_not_for_the_account_is_away(server: Samba, reader: SmbConnector) -> None:
    anna = by(server, "anna")
    with pytest.raises(errors.Unmounted, match="may not be opened"):
        read(anna, "smb://127.0.0.1/private/")
    assert not anna.is_mounted("smb://127.0.0.1/private/"), "its files keep their rights"
    with pytest.raises(AwayError, match="closed to the account"):
        list(anna.files("smb://127.0.0.1/private/", ["smb://127.0.0.1/private/a.txt"]))
    assert read(by(server, "ben"), "smb://127.0.0.1/private/a.txt").body == b"a"


def test_a_refused_account_is_tried_once(server: Samba, reader: SmbConnector) -> None:
    wrong = by(server, "clara", "wrong")
    for _ in range(5):
        with pytest.raises(errors.SignInRefused, match="name or the password is wrong"):
            read(wrong, BASE)
    log = (server.folder / "log" / "smbd.log").read_text(errors="replace")
    assert log.count("[clara]") <= 4


def test_a_password_that_changes_in_mid_crawl(server: Samba, reader: SmbConnector) -> None:
    dora = by(server, "dora")
    assert read(dora, f"{BASE}a.txt").status == 200
    server.run("smbpasswd", "-c", str(server.conf), "-s", "-a", "dora", text="new\nnew\n")
    server.reload()
    with pytest.raises(errors.SignInRefused):
        read(dora, f"{BASE}a.txt")
    with pytest.raises(AwayError):
        list(dora.files(BASE, [f"{BASE}a.txt"]))


def test_a_session_that_ends_is_made_again(server: Samba, reader: SmbConnector) -> None:
    """After each of 5 restarts of the server, and while 4 threads read."""
    stop, failed = threading.Event(), list[str]()

    def run() -> None:
        while not stop.is_set():
            try:
                if read(reader, f"{BASE}a.txt").body != b"harbour":
                    failed.append("body")
            except Exception as error:  # noqa: BLE001
                if errors.kind_of(error) not in ("refused", "reset"):
                    failed.append(repr(error))
                time.sleep(0.05)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        time.sleep(0.3)
        server.reload()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
    assert read(reader, f"{BASE}a.txt").status == 200
    assert len(LINKS._links) == 1  # one session a server


def test_names(server: Samba, reader: SmbConnector) -> None:
    folder = server.share / "names"
    folder.mkdir(exist_ok=True)
    odd = ["rtl\u202egpj.txt", "trailing.", "back\\slash.txt", "co:lon.txt", "x" * 200 + ".txt"]
    for name in [*odd, "same.txt", "SAME.txt", "Same.TXT"]:
        (folder / name).write_text(name)
    answer = read(reader, f"{BASE}names/")
    found = names_in(answer, f"{BASE}names/")
    assert len([name for name in found if name.lower() == "same.txt"]) == 1
    assert answer.counts == {"larm/left_out/same-name": 2}
    assert "rtl%E2%80%AEgpj.txt" in found
    assert b"\xe2\x80\xae" not in answer.body  # a reader sees the true order of the letters
    for name in found:
        assert read(reader, f"{BASE}names/{name}").status == 200, name
    for name in ("a%5C..%5Ca.txt", "a.txt:stream", "..%2Fa.txt", "%00", "a%FFb", "*"):
        assert read(reader, BASE + name).status == 404, name


def test_hidden_and_system_entries(server: Samba, reader: SmbConnector) -> None:
    folder = server.share / "attributes"
    folder.mkdir(exist_ok=True)
    for name in ("plain", "hidden", "system"):
        (folder / f"{name}.txt").write_text(name)
    (folder / "hidden-folder").mkdir()
    for name, letter in (("hidden.txt", "h"), ("system.txt", "s"), ("hidden-folder", "h")):
        server.smbclient("admin", f'setmode "attributes/{name}" +{letter}')
    answer = read(reader, f"{BASE}attributes/")
    assert names_in(answer, f"{BASE}attributes/") == ["plain.txt"]
    assert answer.counts == {"larm/left_out/hidden": 3}
    assert b"Left out: 3 hidden" in answer.body
    assert read(reader, f"{BASE}attributes/hidden.txt").status == 403


def test_stubs_of_an_archive_are_not_recalled(server: Samba, reader: SmbConnector) -> None:
    stubs = "smb://127.0.0.1/stubs/"
    before = read(reader, f"{BASE}a.txt")
    answer = read(reader, stubs)
    assert "a.txt" not in names_in(answer, stubs)
    assert answer.counts["larm/left_out/offline"] >= 1
    same = read(reader, f"{stubs}a.txt", If_None_Match=before.headers["ETag"])
    assert same.status == 304  # it is not taken for gone
    with pytest.raises(errors.Offline):
        read(reader, f"{stubs}a.txt")


def test_locked_and_large_files(server: Samba, reader: SmbConnector) -> None:
    (server.share / "large.txt").write_bytes(b"x" * 200_001)
    (server.share / "large.pdf").write_bytes(b"x" * 300_001)
    (server.share / "fits.txt").write_bytes(b"y" * 199_999)
    with pytest.raises(errors.TooBig):
        read(reader, f"{BASE}large.txt")
    assert read(reader, f"{BASE}large.pdf").flags == [TOO_LARGE]
    assert read(reader, f"{BASE}fits.txt").body == b"y" * 199_999
    script = (
        "import sys, time\n"
        "from smbclient import open_file\n"
        "with open_file(r'\\\\127.0.0.1\\share\\a.txt', mode='rb', share_access='',"
        " username='admin', password='pw', encrypt=True) as file:\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [*server.prefix()[:-1], sys.executable, "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(errors.Locked):
            read(reader, f"{BASE}a.txt")
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait()
    assert read(reader, f"{BASE}a.txt").status == 200


def test_folders_in_a_ring_end(server: Samba, reader: SmbConnector) -> None:
    """Links that the server follows by itself look like folders."""
    top = server.share / "ring"
    (top / "inner").mkdir(parents=True, exist_ok=True)
    (top / "inner" / "back").symlink_to("..")
    (top / "inner" / "a.txt").write_text("a")
    answer = read(reader, f"{BASE}ring/inner/")
    assert names_in(answer, f"{BASE}ring/inner/") == ["a.txt"]
    assert answer.counts == {"larm/left_out/ring": 1}


def test_dfs_links(server: Samba, reader: SmbConnector) -> None:
    """A target that is away costs neither the other files of the namespace nor its own files."""
    dfs = "smb://127.0.0.1/dfs/"
    assert read(reader, f"{dfs}Stra%C3%9Fe/b.txt").body == b"b"
    assert read(reader, f"{dfs}two/a.txt").body == b"a"  # the first target is away
    for name in ("away", "no-share", "no-folder", "empty"):
        for path in (f"{dfs}{name}/", f"{dfs}{name}/a.txt"):
            with pytest.raises(errors.Unavailable, match="DFS link leads to"):
                read(reader, path)
        with pytest.raises(AwayError):  # rights stay as they were
            list(reader.files(f"{dfs}{name}/", [f"{dfs}{name}/a.txt"]))
    assert read(reader, f"{dfs}two/none.txt").status == 404
    for path in ("itself/", "itself/here.txt", "second/back/", "second/back/here.txt"):
        answer = read(reader, dfs + path)
        assert (answer.status, answer.counts) == (404, {"larm/left_out/ring": 1}), path
    assert read(reader, f"{dfs}here.txt").body == b"here"


def test_denied_addresses(server: Samba, reader: SmbConnector) -> None:
    """The target of a DFS link, and a server that was crawled before, are denied."""
    for denied, path in (("127.0.0.9", "dfs/away/"), ("127.0.0.1", "share/")):
        LINKS.close()
        url = f"smb://127.0.0.1/{path}"
        found = SmbConnector(reader.sites, LIMITS, deny=DenyAddresses([denied]))
        with pytest.raises(errors.DeniedAddress):
            read(found, f"{url}a.txt")
        with pytest.raises(AwayError):
            list(found.files(url, [f"{url}a.txt"]))
        assert found.is_mounted(found.root_of(url) or "") == (path != "share/")


def test_a_large_folder_comes_in_parts(
    server: Samba, reader: SmbConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "PART", 100)
    folder = server.share / "many"
    folder.mkdir(exist_ok=True)
    for number in range(350):
        (folder / f"ä{number:03}.txt").touch()
    found, url = list[str](), f"{BASE}many/"
    for _ in range(4):
        part = names_in(read(reader, url), f"{BASE}many/")
        found += [name for name in part if not name.startswith("?")]
        url = f"{BASE}many/{part[-1]}"
    assert found == [f"%C3%A4{number:03}.txt" for number in range(350)]


def test_rights_that_cannot_be_read_close_the_document(server: Samba, reader: SmbConnector) -> None:
    """Samba tells share lists to administrators only."""
    server.acl("a.txt", "anna:ALLOWED/0x0/READ")
    server.reload()  # its process for such questions may have an administrator's rights
    anna = by(server, "anna")
    rights = read(anna, f"{BASE}a.txt").rights
    assert isinstance(rights, str)
    assert "LARM_SMB_SHARE_ACCESS" in rights
    shares = {BASE: AccessList.simple(["authenticated"])}
    told = SmbConnector(anna.sites, LIMITS, shares)
    found = read(told, f"{BASE}a.txt").rights
    assert not isinstance(found, str | None)
    assert [name for name, _ in found.above] == [BASE]
    (row,) = told.files(BASE, [f"{BASE}gone.txt"])
    assert row[1] == OPERATORS_ONLY


def test_unencrypted_servers_get_signed_requests(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path(tempfile.mkdtemp(prefix="smb-", dir="/tmp"))
    folder.chmod(0o755)
    with Samba(folder, encrypt="off\n server max protocol = SMB2_10") as server:
        (server.share / "a.txt").write_text("harbour")
        with server.inside():
            reader = SmbConnector(read_sites_file(server.sites(server.folder)), LIMITS)
            assert read(reader, f"{BASE}a.txt").body == b"harbour"
            link = reader._link("127.0.0.1", 445)
            assert not link.is_encrypted
            assert link._session.signing_required
            LINKS.close()
    shutil.rmtree(folder)
