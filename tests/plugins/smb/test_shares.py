"""smb:// against a real Samba: each person finds what smbclient opens as this person, the documents
are those of the same tree by file://, and a server that is away costs no document."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from larmspider.crawl.reader import CrawlDir
from larmspider.index.access import Access
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from tests.support.crawling import environment, records
from tests.support.servers.samba import Samba, needs_samba

pytestmark = [pytest.mark.acceptance, needs_samba]

READ, DENY = "ALLOWED/OI|CI/READ", "DENIED/OI|CI/READ"
EVERYONE, USERS, CREATOR = "S-1-1-0", "S-1-5-11", "S-1-3-0"
FOLDERS = {
    "open": (f"{EVERYONE}:{READ}",),
    "signed-in": (f"{USERS}:{READ}",),
    "staff": (f"staff:{READ}",),
    "hr-but-anna": (f"anna:{DENY}", f"hr:{READ}"),
    "anna": ("anna:ALLOWED/OI|CI/FULL",),
    "not-staff": (f"staff:{DENY}", f"{EVERYONE}:{READ}"),
    "write-only": ("ben:ALLOWED/OI|CI/0x00100116", f"dora:{READ}"),
    "nobody": (),
    "for-new-files": ("clara:ALLOWED/OI|CI|IO/READ",),
}
"""Entries of each folder, whose file inherits them. The crawler may read everything."""
PERSONS = ("anna", "ben", "clara", "dora")
FILES = [f"{name}/{name}.txt" for name in FOLDERS]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    found = Path(tempfile.mkdtemp(prefix="smb-", dir="/tmp"))
    found.chmod(0o755)
    yield found
    shutil.rmtree(found)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Samba]:
    for name in ("closed", "dfs", "tree", "many", "odd"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    shares = {name: f" path = {folder / name}\n read only = no" for name in ("closed", "many")}
    shares["tree"] = f" path = {folder / 'tree'}"
    shares["odd"] = f" path = {folder / 'odd'}\n veto files = /none/\n mangled names = no"
    shares["dfs"] = f" path = {folder / 'dfs'}\n msdfs root = yes"
    with Samba(folder, shares) as running:
        yield running


def start_of(folder: Path, name: str) -> Path:
    found = folder / f"crawl-{name}"
    found.mkdir(exist_ok=True)
    return found


def put(server: Samba, path: str, text: str, share: str = "share") -> None:
    """A file that inherits the list of its folder, as files that people save do."""
    own = server.folder / "upload"
    own.write_text(text)
    said = server.smbclient("admin", f'put "{own}" "{path}"', share=share)
    assert "putting file" in said, said


# rights


def rows_of(server: Samba, crawl: Path) -> list[tuple[str, str, bool, bool]]:
    """Person and file, what smbclient opens, and what this person finds."""
    whole = Searcher.open(crawl / "crawl" / "index")
    request = SearchRequest("harbour", 100, copies=True, verbatim=True)
    every = {hit.url for hit in whole.search(request).hits}
    assert len(every) == len(FILES) + 1
    found = []
    for person in PERSONS:
        reader = server.principals(person)
        seen = {
            hit.url for hit in whole.seen_by(Access(("file://",), (), reader)).search(request).hits
        }
        opens = {f"smb://127.0.0.1/share/{one}" for one in server.opens(person, FILES)}
        closed = server.opens(person, ["closed.txt"], share="closed")
        opens |= {f"smb://127.0.0.1/closed/{one}" for one in closed}
        found += [(person, url, url in opens, url in seen) for url in sorted(every)]
    return found


def sharesec(server: Samba, *entries: str) -> None:
    server.run("sharesec", "closed", "-s", str(server.conf), "--replace", ",".join(entries))


def test_each_person_finds_what_this_person_may_open(server: Samba, folder: Path) -> None:
    """Before and after 12 changes of rights, each set within one refresh."""
    crawl = start_of(folder, "rights")
    for name, entries in FOLDERS.items():
        (server.share / name).mkdir()
        (server.share / name).chmod(0o777)
        server.acl(name, *entries)
        put(server, f"{name}/{name}.txt", f"harbour {name}")
    put(server, "closed.txt", "harbour closed", share="closed")
    crawler, dora = (_sid(server, one) for one in ("crawler", "dora"))
    sharesec(server, f"{crawler}:ALLOWED/0/FULL", f"{dora}:ALLOWED/0/READ",
             f"{_sid(server, 'admin')}:ALLOWED/0/FULL")  # fmt: skip
    seeds = "smb://127.0.0.1/share/ smb://127.0.0.1/closed/"
    ran = server.crawl(seeds, crawl)
    assert ran.status == 0, ran.err[-3000:]
    rows = rows_of(server, crawl)
    assert len(rows) == 40
    assert [row for row in rows if row[2] != row[3]] == []
    before = {row[:2]: row[2] for row in rows}
    assert 8 < sum(before.values()) < 32

    changes = {
        "open/open.txt": (f"staff:{READ}",),  # taken away from the others
        "signed-in/signed-in.txt": (f"anna:{DENY}", f"{USERS}:{READ}"),
        "staff/staff.txt": (f"staff:{READ}", f"dora:{READ}"),
        "hr-but-anna/hr-but-anna.txt": (f"hr:{READ}",),  # the deny is gone
        "anna/anna.txt": (f"ben:{READ}",),
        "not-staff/not-staff.txt": (f"{EVERYONE}:{READ}",),
        "write-only/write-only.txt": (f"ben:{READ}",),
        "nobody/nobody.txt": (f"clara:{READ}",),
        "for-new-files/for-new-files.txt": (),
    }
    for path, entries in changes.items():
        server.acl(path, *entries)
    put(server, "open/second.txt", "a second text")  # a list that is inherited
    server.acl("open/open.txt", f"hr:{READ}")  # changed twice
    sharesec(server, f"{crawler}:ALLOWED/0/FULL", f"{_sid(server, 'anna')}:ALLOWED/0/READ",
             f"{_sid(server, 'ben')}:ALLOWED/0/READ")  # fmt: skip
    server.reload()
    ran = server.crawl(seeds, crawl, refresh="all")
    assert ran.status == 0, ran.err[-3000:]
    rows = rows_of(server, crawl)
    assert len(rows) == 40
    assert [row for row in rows if row[2] != row[3]] == []
    changed = [row for row in rows if before[row[:2]] != row[2]]
    assert len(changed) >= 12


def _sid(server: Samba, name: str) -> str:
    return next(
        one.removeprefix("sid:")
        for one in server.principals(name)
        if one.startswith("sid:S-1-5-21")
    )


def test_a_file_that_another_one_has_replaced_opens_no_old_text(
    server: Samba, folder: Path
) -> None:
    crawl, seed = start_of(folder, "replaced"), "smb://127.0.0.1/share/swap/"
    (server.share / "swap").mkdir()
    (server.share / "swap").chmod(0o777)
    server.acl("swap", f"{EVERYONE}:{READ}")
    put(server, "swap/plan.txt", "harbour oldplan")
    put(server, "swap/other.txt", "harbour otherplan, which is longer")
    server.acl("swap/plan.txt", f"anna:{READ}")

    def seen(person: str, word: str) -> int:
        reader = Access(("file://",), (), server.principals(person))
        return Searcher.open(crawl / "crawl" / "index").seen_by(reader).totals(word)[0]

    def crawled(**options: str) -> None:
        ran = server.crawl(seed, crawl, **options)
        assert ran.status == 0, ran.err[-3000:]

    crawled()
    assert [seen(one, "oldplan") for one in ("anna", "ben")] == [1, 0]
    server.smbclient("admin", 'del "swap/plan.txt"; rename "swap/other.txt" "swap/plan.txt"')
    assert server.opens("ben", ["swap/plan.txt"]) == {"swap/plan.txt"}
    crawled()
    assert [seen(one, "oldplan") for one in ("anna", "ben")] == [0, 0]
    crawled(refresh="all")
    assert [seen(one, "oldplan") for one in ("anna", "ben")] == [0, 0]
    assert [seen(one, "otherplan") for one in ("anna", "ben")] == [1, 1]


# the same documents as by file://

NAMES = (
    "plain.txt", "Größe.txt", "Отчёт.txt", "計画.txt", "تقرير.txt", "rtl\u202ename.txt",
    "with space & + # %41.txt", "UPPER Case.TXT", "it's (1) [x] {y}.txt", "dots...and.txt",
    "empty.txt", "a/b/c/d/deep.txt", "a/ÄÖ/second.txt",
)  # fmt: skip


def test_documents_times_and_sizes_are_those_of_the_same_tree_by_file(
    server: Samba, folder: Path
) -> None:
    tree = folder / "tree"
    for number, name in enumerate(NAMES):
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "" if name == "empty.txt" else f"harbour {number} " * (1 + 9_000 * (number == 2))
        )
        os.utime(path, (0, 1_700_000_000 + 7 * number))
    with (tree / "sparse.txt").open("wb") as sparse:
        sparse.truncate(300_000)
    (tree / "large.txt").write_text("line of text\n" * 300_000)
    assert server.crawl("smb://127.0.0.1/tree/", start_of(folder, "smb")).status == 0
    ran = server.crawl(f"file://{tree}/", start_of(folder, "file"), LARM_FILE_ROOTS=str(tree))
    assert ran.status == 0, ran.err[-3000:]
    by_smb, by_file = (documents(folder, name) for name in ("smb", "file"))
    assert set(by_smb) == set(by_file)
    assert len(by_smb) == len(NAMES) + 2
    assert by_smb == by_file


def documents(folder: Path, name: str) -> dict[str, tuple[str, ...]]:
    crawl = folder / f"crawl-{name}"
    found = {}
    times = times_of(crawl)
    for line in records(crawl / "crawl" / "store.log"):
        if not line["url"].endswith("/"):
            path = unquote(line["url"].partition("/tree/")[2])
            found[path] = (line["size"], line["mime-type"], line["title"], times[line["url"]])
    return found


def times_of(crawl: Path) -> dict[str, str]:
    with CrawlDir(crawl / "crawl").frontier() as frontier:
        assert frontier is not None
        return {visit.url: visit.last_modified for _, visit in frontier.visits()}


# servers that are away


def test_no_kill_and_no_restart_costs_or_doubles_a_document(server: Samba, folder: Path) -> None:
    """20 kills of the crawl, and 3 of the server's sessions."""
    crawl = start_of(folder, "kills")
    for number in range(120):
        path = folder / "many" / f"{number % 12}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"harbour {number}")
    command = server.command(
        "smb://127.0.0.1/many/", crawl, DOWNLOAD_DELAY="0.06", CONCURRENT_REQUESTS_PER_DOMAIN="1",
        LARM_RETRY_TIMES="10", LARM_CHECKPOINT_SECS="0.3",
    )  # fmt: skip
    chance = random.Random(47)
    kills = 0
    while True:
        with (crawl / "out").open("w") as out:
            process = subprocess.Popen(
                command, cwd=crawl, stdout=out, stderr=out,
                env=environment(crawl, "larmspider.settings"),
            )  # fmt: skip
        try:
            while "Spider opened" not in (crawl / "out").read_text() and process.poll() is None:
                time.sleep(0.05)
            process.wait(chance.uniform(0.2, 1.2) if kills < 20 else 120)
            break
        except subprocess.TimeoutExpired:
            kills += 1
        finally:
            process.kill()
            process.wait()
        if kills and kills % 6 == 0:
            server.reload()
    assert kills >= 20
    assert process.returncode == 0, (crawl / "out").read_text()[-3000:]
    urls = Counter(line["url"] for line in records(crawl / "crawl" / "store.log"))
    assert set(urls.values()) == {1}
    assert sum(not url.endswith("/") for url in urls) == 120

    # the share vanishes between crawl and refresh, then its folder is empty, then all is back
    server.shares["many"], was = f" path = {folder / 'nowhere'}", server.shares["many"]
    server.reload()
    assert refreshed(server, crawl) == 120
    (folder / "empty").mkdir()
    server.shares["many"] = f" path = {folder / 'empty'}"
    server.reload()
    assert refreshed(server, crawl) == 120
    server.stop()
    assert refreshed(server, crawl) == 120
    server.shares["many"] = was
    server.start()
    (folder / "many" / "3" / "3.txt").write_text("harbour again")
    assert refreshed(server, crawl) == 120
    assert not (crawl / "crawl" / "deleted.log").exists() or not records(
        crawl / "crawl" / "deleted.log"
    )


def refreshed(server: Samba, crawl: Path) -> int:
    """The documents that are found after a refresh, which waits for nothing."""
    server.crawl("smb://127.0.0.1/many/", crawl, 120, refresh="all", LARM_BACKOFF_SECS="0.05")
    return Searcher.open(crawl / "crawl" / "index").search(SearchRequest("harbour", 1)).total


# DFS


def test_a_dfs_link_leads_to_another_share(server: Samba, folder: Path) -> None:
    crawl = start_of(folder, "dfs")
    (folder / "dfs" / "here.txt").write_text("harbour here")
    (folder / "tree" / "there.txt").write_text("harbour there")
    (folder / "dfs" / "plans").symlink_to("msdfs:127.0.0.1\\tree")
    ran = server.crawl("smb://127.0.0.1/dfs/", crawl)
    assert ran.status == 0, ran.err[-3000:]
    urls = {line["url"] for line in records(crawl / "crawl" / "store.log")}
    assert {"smb://127.0.0.1/dfs/here.txt", "smb://127.0.0.1/dfs/plans/there.txt"} <= urls


# bad input


def test_a_wrong_password_is_told_once_and_deletes_nothing(server: Samba, folder: Path) -> None:
    crawl = start_of(folder, "password")
    sites = server.sites(crawl, password="wrong")
    ran = server.crawl(
        "smb://127.0.0.1/tree/", crawl, LARM_SITES_FILE=str(sites), LARM_HOST_MAX_PARKS="0",
        LARM_BACKOFF_SECS="0.05",
    )  # fmt: skip
    assert "smb://127.0.0.1/tree/: the account of the sites file is refused" in ran.err
    log = (server.folder / "log" / "smbd.log").read_text(errors="replace")
    assert log.count("NT_STATUS_WRONG_PASSWORD") <= 2  # servers lock accounts that fail often


def test_a_refresh_says_that_the_account_is_refused(server: Samba, folder: Path) -> None:
    crawl = start_of(folder, "refused")
    (folder / "tree" / "kept.txt").write_text("harbour kept")
    assert server.crawl("smb://127.0.0.1/tree/", crawl).status == 0
    ran = server.crawl(
        "smb://127.0.0.1/tree/", crawl, refresh="all", LARM_HOST_MAX_PARKS="0",
        LARM_SITES_FILE=str(server.sites(crawl, password="wrong")), LARM_BACKOFF_SECS="0.05",
    )  # fmt: skip
    assert "waits       the account for 127.0.0.1:445 is refused" in ran.out, ran.out
    assert "does not answer" not in ran.out


# politeness


def test_the_log_of_the_server_shows_the_pace(server: Samba, folder: Path) -> None:
    """One session, and half a second between two files."""
    crawl = start_of(folder, "pace")
    (folder / "closed" / "pace").mkdir()
    for number in range(5):
        (folder / "closed" / "pace" / f"{number}.txt").write_text(f"harbour {number}")
    ran = server.crawl(
        "smb://127.0.0.1/closed/pace/", crawl, DOWNLOAD_DELAY="0.5",
        CONCURRENT_REQUESTS_PER_DOMAIN="1",
    )  # fmt: skip
    assert ran.status == 0, ran.err[-3000:]
    log = (server.folder / "log" / "smbd.log").read_text(errors="replace")
    opened = re.findall(
        r"\[(\S+ [\d:.]+), .*\n\s+crawler\|create_file\|ok\|.*\|(?:\S*/)?(\d)\.txt", log
    )
    assert len({name for _, name in opened[-5:]}) == 5
    times = [datetime.strptime(when, "%Y/%m/%d %H:%M:%S.%f") for when, _ in opened[-5:]]
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert min(gaps) >= 0.45
