"""The files of synonyms and best bets: what they say, what is wrong, and when they change."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.index.access import EVERYTHING, Access
from larmspider.search.best_bets import parse_best_bets
from larmspider.search.curated import Curated, digest

BETS = """\
vpn, remote access => http://wiki.example/vpn
VPN => https://pay.hr.example/a?b=1,2  How to  connect
holiday => ftp://wiki.example/
holiday =>
=> http://wiki.example/
holiday
Urlaub => http://me:secret@wiki.example/
"""


def settings_of(**more: str) -> Settings:
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    for name, value in more.items():
        settings.set(name, value)
    return settings


def test_best_bets_belong_to_whole_queries() -> None:
    bets, problems = parse_best_bets(BETS.splitlines())
    found = bets.of("Remote  ACCESS?", EVERYTHING.page)
    assert [(bet.url, bet.title) for bet in found] == [("http://wiki.example/vpn", "")]
    assert [bet.title for bet in bets.of("vpn", EVERYTHING.page)] == ["", "How to connect"]
    assert bets.of("vpn login", EVERYTHING.page) == bets.of("", EVERYTHING.page) == []
    assert [number for number, _ in problems] == [3, 4, 5, 6, 7]
    assert "begins with http:// or https://" in problems[0][1]


def test_a_sixth_link_of_a_query_is_a_bad_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named, and serves the other queries of its line."""
    path = tmp_path / "best_bets.txt"
    path.write_text("".join(f"VPN{', tunnel' * (n > 4)} => http://h/{n}\n" for n in range(1, 8)))
    with caplog.at_level(logging.WARNING):
        bets = Curated.from_settings(settings_of(LARM_DIR=str(tmp_path))).best_bets.value
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}:{n}: 'http://h/{n}': 'vpn' has 5 links already, the maximum" for n in (6, 7)
    ]
    assert [bet.url[-1] for bet in bets.of("vpn", EVERYTHING.page)] == list("12345")
    assert [bet.url[-1] for bet in bets.of("tunnel", EVERYTHING.page)] == list("567")


@pytest.mark.parametrize("url", [
    "https://pay.hr.example/a", "https://PAY.hr.example./a", "https://pay.hr.example\\@wiki/",
])  # fmt: skip
def test_a_best_bet_of_a_hidden_host_is_not_shown(url: str) -> None:
    """However it is spelled: as browsers read it."""
    bets, _ = parse_best_bets([f"canary => {url} canary"])
    assert bets.of("canary", EVERYTHING.page)
    assert bets.of("canary", Access(("*.hr.example",)).page) == []
    assert bets.of("canary", Access(("*.hr.example",), ("pay.hr.example",)).page)


def test_bad_lines_are_named_at_the_start_and_the_rest_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With file and line, once for each version of the file."""
    path = tmp_path / "best_bets.txt"
    path.write_text(BETS)
    (tmp_path / "synonyms.txt").write_bytes(b"\xef\xbb\xbfvpn, tunnel\r\nf\xfcr, x\r\n")
    with caplog.at_level(logging.WARNING):
        curated = Curated.from_settings(settings_of(LARM_DIR=str(tmp_path)))
    named = [record.getMessage().partition(" ")[0] for record in caplog.records]
    assert named == [
        f"{tmp_path / 'synonyms.txt'}:2:", *(f"{path}:{number}:" for number in range(3, 8)),
    ]  # fmt: skip
    assert "expected UTF-8" in caplog.text
    caplog.clear()
    assert curated.best_bets.value.of("vpn", EVERYTHING.page)
    assert curated.synonyms.value.others[("tunnel",)] == ("vpn",)
    assert not caplog.records


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """When it comes, is replaced, and goes."""
    curated = Curated.from_settings(settings_of(LARM_DIR=str(tmp_path)))
    assert not curated.synonyms.value.others
    for text in ("a, b\n", "a, c\n"):
        new = tmp_path / "new"
        new.write_text(text)
        new.replace(tmp_path / "synonyms.txt")
        assert curated.synonyms.value.others[("a",)] == (text[3],)
    (tmp_path / "synonyms.txt").unlink()
    assert not curated.synonyms.value.others


def test_a_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"LARM_SYNONYMS_FILE=.*none\.txt: expected a file"):
        Curated.from_settings(settings_of(LARM_SYNONYMS_FILE=str(tmp_path / "none.txt")))


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """Not with bad lines, and not after another editor was faster."""
    file = Curated.from_settings(settings_of(LARM_DIR=str(tmp_path))).synonyms
    file.replace("a, b \r\n\r\nc, d", digest(b""))
    path = tmp_path / "synonyms.txt"
    assert path.read_bytes() == b"a, b\n\nc, d\n"
    for text, seen, words in (
        ("a, b", digest(b""), "has been changed since"),
        ("a, b\nx", digest(path.read_bytes()), "line 2: 'x': expected 2 to 16"),
    ):
        with pytest.raises(ConfigError, match=words):
            file.replace(text, seen)
    assert path.read_bytes() == b"a, b\n\nc, d\n"
    assert [one.name for one in tmp_path.iterdir()] == ["synonyms.txt"]
