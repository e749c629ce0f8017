"""larmspider/plugins/smb/ without a server: URLs, folders' entries, seeds."""

from __future__ import annotations

import struct
from itertools import repeat
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.fetch.errors import DeniedAddress
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import Sites, read_sites_file
from larmspider.plugins.smb import connector
from larmspider.plugins.smb.connector import Place, SmbConnector, _of_readers, place_of
from larmspider.plugins.smb.messages import Entry, entries_of


def entry(name: str, attributes: int = 0x20, tag: int = 0) -> Entry:
    return Entry(name, 0, 1, attributes, tag, 7)


def test_urls() -> None:
    assert place_of("smb://nas/s/%C3%84/a%20b.txt") == Place("nas", 445, "s", ("Ä", "a b.txt"))
    place = place_of("smb://[::1]:4455/s/%C3%84/?from=x")
    assert place == Place("::1", 4455, "s", ("Ä",), is_folder=True)
    assert place.url == "smb://[::1]:4455/s/%C3%84/"
    for url in ("smb://nas/", "smb://nas/s/a%5Cb", "smb://nas/s/a:b", "smb://nas/s/%FF",
                "smb://nas/s/%2E%2E", "http://nas/s/"):  # fmt: skip
        assert place_of(url) is None, url


def test_entries_that_are_left_out() -> None:
    listing = _of_readers(
        iter([
            entry("."), entry("b.txt"), entry("a.txt"), entry("h.txt", 0x2), entry("s.txt", 0x4),
            entry("stub.txt", 0x1000), entry("cloud.txt", 0x400000), entry("folder", 0x10),
            entry("junction", 0x410, 0xA0000003), entry("dfs", 0x410, 0x8000000A),
            entry("compressed.txt", 0x420, 0x80000013), entry("A.TXT"), entry("x\x07.txt"),
        ]), 1,
    )  # fmt: skip
    names = [one.name for one in listing.entries]
    assert names == ["A.TXT", "b.txt", "compressed.txt", "dfs", "folder"]
    assert dict(listing.left_out) == {
        "hidden": 2, "offline": 2, "link": 1, "same-name": 1, "unfit-name": 1,
    }  # fmt: skip


def test_a_folder_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "LARGEST", 10)
    listing = _of_readers(repeat(entry("a.txt")), 1)
    assert [one.name for one in listing.entries] == ["a.txt"]
    assert dict(listing.left_out) == {"same-name": 19, "too-many": 1}
    listing = _of_readers((entry(f"{number:02}.txt") for number in range(12)), 1)
    assert (len(listing.entries), listing.left_out["too-many"]) == (10, 2)


def test_entries_are_read_from_the_answer() -> None:
    form = struct.Struct("<IIQQQQQQIIIBB24sHQ")
    first, second = "a".encode("utf-16-le"), "Ä.txt".encode("utf-16-le")
    when = 116_444_736_000_000_000 + 10_000_000
    head = form.pack(112, 0, 0, 0, when, 0, 5, 0, 0x20, 2, 0, 0, 0, b"", 0, 11)
    tail = form.pack(0, 0, 0, 0, when, 0, 6, 0, 0x10, len(second), 0, 0, 0, b"", 0, 12)
    found = entries_of((head + first).ljust(112, b"\0") + tail + second)
    assert found == [
        Entry("a", 1_000_000_000, 5, 0x20, 0, 11), Entry("Ä.txt", 1_000_000_000, 6, 0x10, 0, 12),
    ]  # fmt: skip
    assert entries_of(b"") == []


def test_seeds_that_no_share_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SmbConnector(Sites(), Limits())
    assert reader.why_not("smb://nas/share/") == ""
    assert "smb://server/share/folder/" in reader.why_not("smb://nas/")
    path = tmp_path / "sites.toml"
    path.write_text('[[site]]\nhosts = "smb://nas"\nauth = "basic"\nuser = "u"\npassword = "p"\n')
    path.chmod(0o600)
    reader = SmbConnector(read_sites_file(path), Limits())
    assert "expected ntlm or negotiate" in reader.why_not("smb://nas/share/")
    path.write_text('[[site]]\nhosts = "smb://nas"\nauth = "negotiate"\n')
    monkeypatch.setattr(connector, "find_spec", lambda name: None)
    reader = SmbConnector(read_sites_file(path), Limits())
    assert "pip install 'larmspider[kerberos]'" in reader.why_not("smb://nas/share/")


@pytest.mark.parametrize("value", ['{"smb://nas/": ["everyone"]}', '{"smb://nas/s/": "everyone"}'])
def test_the_setting_of_share_lists(value: str) -> None:
    settings = Settings()
    settings.setmodule("larmspider.settings")
    settings.set("LARM_SMB_SHARE_ACCESS", value)
    with pytest.raises(ConfigError, match="LARM_SMB_SHARE_ACCESS"):
        SmbConnector.from_settings(settings)


@pytest.mark.parametrize("server", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_a_denied_address_is_not_asked(server: str) -> None:
    """No connection is tried: nothing listens at this port, and that would be ``refused``."""
    settings = Settings({"LARM_DENY_ADDRESSES": ["127.0.0.0/8", "::1"]})
    found = SmbConnector.from_settings(settings)
    with pytest.raises(DeniedAddress, match="LARM_DENY_ADDRESSES"):
        found.read(f"smb://{server}:1/share/a.txt", {"If-None-Match": "", "If-Modified-Since": ""})
