"""larmspider/urls/seeds.py: what can be a seed, and how it is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy import Request

from larmspider.errors import ConfigError
from larmspider.urls.seeds import read_seeds


@pytest.mark.parametrize(
    "seed, url",
    [
        ("http://wiki", "http://wiki/"),
        ("http:127.0.0.1:8802/a", "http://127.0.0.1:8802/a"),
        ("http:/h/", "http://h/"),
        (r"HTTP:\\H\a", "http://h/a"),
        ("http://h/a/../B#top", "http://h/B"),
        ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("http://h/a@b?c@d", "http://h/a@b?c@d"),
    ],
)
def test_a_seed_is_what_will_be_fetched(seed: str, url: str) -> None:
    """As links are: Scrapy takes none without "://", and would end start() at it."""
    assert read_seeds(seed) == [url]
    Request(url)


def test_white_space_around_a_file_name_is_none_of_it(tmp_path: Path) -> None:
    """As the shell's quotes leave it."""
    (tmp_path / "seeds.txt").write_text("http://a/\n")
    assert read_seeds(f" @{tmp_path / 'seeds.txt'} ") == ["http://a/"]


@pytest.mark.parametrize(
    "seed, shown",
    [
        ("http://joe:secret@h/a", "'http://***@h/a' is not a seed: it holds a user name"),
        ("http://secret@h/", "'http://***@h/'"),
        ("http:secret@h/", "'http:***@h/'"),
        (r"http:\\a:se@cret@h\b", r"'http:\\\\***@h\\b'"),
        ("ftp://joe:secret@h/", "'ftp://***@h/'"),
        ("joe:secret@h/", "'***@h/'"),
        ("http://joe:sec/ret@h/", "'***@h/' is not a seed"),
        ("http://joe:secret@h:99999/", "'http://***@h:99999/'"),
    ],
)
def test_credentials_are_refused_and_not_repeated(seed: str, shown: str) -> None:
    """The message goes to logs, and would stand there for good."""
    with pytest.raises(ConfigError) as raised:
        read_seeds(seed)
    assert shown in str(raised.value)
    assert "sec" not in str(raised.value)
    assert "cret" not in str(raised.value)


def test_a_share_as_windows_writes_it_gets_its_url() -> None:
    with pytest.raises(ConfigError, match=r"write smb://nas/Daten/Plan$"):
        read_seeds(r"\\nas\Daten\Plan")
