"""The judge of POSIX lists against the kernel: for each person and file, `setpriv` reads it."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.access import posix
from larmspider.access.file_rights import FileRights
from larmspider.access.judge import may_enter, may_read
from larmspider.access.lists import POSIX, AccessList, UnreadableError
from larmspider.access.rights import Document
from larmspider.urls.file_urls import FileRoots, url_of
from tests.support.access import PEOPLE, acl, kernel_reads, reader_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="other users are made by root alone")

_FILES = {
    "everyone": (1001, 2001, 0o644, None),
    "owner": (1001, 2001, 0o600, None),
    "group": (1001, 2001, 0o640, None),
    "owner-may-not": (1001, 2001, 0o044, None),
    "group-may-not": (1001, 2001, 0o604, None),
    "write-only": (1001, 2001, 0o222, None),
    "none": (1001, 2001, 0o000, None),
    "of-root": (0, 0, 0o640, None),
    "named-user": (1001, 2001, 0o600, [("user", 1003, 4)]),
    "named-user-masked": (1001, 2001, 0o600, [("user", 1003, 4), ("mask", 0, 2)]),
    "named-user-may-not": (1001, 2001, 0o644, [("user", 1003, 0)]),
    "named-group": (1001, 2001, 0o600, [("group", 2003, 4)]),
    "named-group-masked": (1001, 2001, 0o644, [("group", 2003, 4), ("mask", 0, 0)]),
    "one-group-may": (1001, 2001, 0o600, [("group", 2002, 0), ("group", 2003, 4)]),
    "no-group-may": (1001, 2001, 0o604, [("group", 2002, 0), ("group", 2003, 0)]),
    "owner-masked": (1001, 2001, 0o400, [("user", 1001, 0), ("mask", 0, 0)]),
    "group-and-user": (1001, 2001, 0o640, [("user", 1004, 0), ("group", 2002, 4)]),
}


@pytest.fixture(scope="module")
def share() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="share-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        for name, (uid, gid, mode, more) in _FILES.items():
            file = folder / name
            file.write_text("text")
            os.chown(file, uid, gid)
            file.chmod(mode)
            if more:
                acl(file, more)
        for name, (uid, gid, mode, more) in _FILES.items():
            inner = folder / f"in-{name}"
            inner.mkdir()
            (inner / "file").write_text("text")
            os.chown(inner, uid, gid)
            # the right to enter is x
            inner.chmod(sum((mode >> shift & 4) // 4 << shift for shift in (0, 3, 6)))
            if more:
                acl(inner, [(tag, number, (bits & 4) // 4) for tag, number, bits in more])
        yield folder
    finally:
        shutil.rmtree(folder)


def test_the_judge_says_what_the_kernel_does(share: Path) -> None:
    source = FileRights(FileRoots([os.fsencode(share)]))
    files = [share / name for name in _FILES] + [share / f"in-{name}" / "file" for name in _FILES]
    read, of_all = 0, 0
    for person in PEOPLE:
        reader = reader_of(person)
        expected = kernel_reads(person, files)
        for file in files:
            rights = source.access_of(Document(url_of(os.fsencode(file))))
            assert rights is not None
            found = may_read(rights.list, reader) and all(
                may_enter(one, reader) for _, one in rights.above
            )
            assert found == expected[file], f"{person} {file.name} in {file.parent.name}"
            read, of_all = read + found, of_all + 1
    assert 0.2 < read / of_all < 0.8  # both answers are common


def test_a_person_without_numbers_is_one_of_the_others() -> None:
    rights = AccessList(POSIX, (("owner", 1001, 7), ("owning-group", 2001, 7), ("other", 0, 0)))
    assert not posix.may(rights, posix.READ, frozenset({"everyone", "user:anna", "group:hr"}))


def test_a_link_has_no_rights_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(UnreadableError, match="symbolic link"):
        posix.list_of(os.fsencode(tmp_path / "link"))


def test_a_damaged_acl_is_not_guessed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for damaged in (b"\1", struct.pack("<I", 3), struct.pack("<IHHI", 2, 64, 7, 0), b"\2\0\0\0abc"):
        monkeypatch.setattr(os, "getxattr", lambda *_a, damaged=damaged, **_k: damaged)
        with pytest.raises(UnreadableError):
            posix.list_of(os.fsencode(tmp_path))


def test_a_file_that_is_gone_cannot_be_judged(tmp_path: Path) -> None:
    source = FileRights(FileRoots([os.fsencode(tmp_path)]))
    with pytest.raises(UnreadableError, match="No such file"):
        source.access_of(Document(url_of(os.fsencode(tmp_path / "gone"))))
    with pytest.raises(UnreadableError, match="LARM_FILE_ROOTS"):
        source.access_of(Document("file:///etc/passwd"))
    assert source.access_of(Document("http://wiki.example/")) is None


def test_root_reads_all(share: Path) -> None:
    assert stat.S_IMODE((share / "none").stat().st_mode) == 0
    read = subprocess.run(["cat", str(share / "none")], capture_output=True, check=False)
    assert read.returncode == 0
    assert may_read(posix.list_of(os.fsencode(share / "none")), frozenset({"uid:0"}))
