"""larmspider/urls/file_urls.py: names of files as URLs, and which of them may be crawled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from larmspider.errors import ConfigError, InvalidURL
from larmspider.frontier.storage.records import host_of
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.file_urls import FILES, FileRoots, OpenableUrls, path_of, url_of

NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda name: name not in (b".", b"..") and not set(name) & {0, ord("/")}
)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_any_name_has_one_url_in_canonical_form(names: list[bytes]) -> None:
    path = b"/" + b"/".join(names)
    url = url_of(path)
    assert path_of(url) == path
    assert Canonicalizer().forms(url) == (url, url)
    assert host_of(url) == FILES


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("file:///srv/a b/%fc?x=1#y", "file:///srv/a%20b/%FC"),
        ("FILE://localhost//srv//A/../Index.html", "file:///srv/Index.html"),
        ("file:///srv/?from=b", "file:///srv/?from=b"),
        ("file:///srv/?C=N", "file:///srv/"),
    ],
)
def test_the_exact_form_is_the_canonical_one(url: str, form: str) -> None:
    """No guess is made of files: names differ by their case, and index.html by its name."""
    assert Canonicalizer().forms(url) == (form, form)
    assert Canonicalizer().form(url, 0xFF) == form


def test_a_file_of_another_host_is_no_url_of_ours() -> None:
    with pytest.raises(InvalidURL, match="file of another host"):
        Canonicalizer()("file://nas/share/a.txt")


def test_roots_hold_what_lies_below_them() -> None:
    roots = FileRoots([b"/srv/share/", b"/srv/share/deep", b"/data"])
    assert roots.of(b"/srv/share") == b"/srv/share"
    assert roots.of(b"/srv/share/deep/a") == b"/srv/share/deep"
    assert roots.of(b"/srv/shared") is None
    assert roots.why_not("file:///data/a%2fb") == ""
    assert roots.why_not("file:///etc/passwd") == "no file below LARM_FILE_ROOTS"
    assert "names no folder" in FileRoots().why_not("file:///etc/passwd")
    assert FileRoots([b"/"]).of(b"/etc") == b"/"


@pytest.mark.parametrize("root", ["srv/share", "", "/a\0b"])
def test_a_root_is_an_absolute_path(root: str) -> None:
    with pytest.raises(ConfigError, match="expected absolute paths of folders"):
        FileRoots.from_settings(Settings({"LARM_FILE_ROOTS": [root]}))


def test_readers_open_files_where_they_find_them() -> None:
    places = {"file:///srv/": "https://files.example/", "file:///srv/it/": "smb://nas/it/"}
    opens = OpenableUrls.from_settings(Settings({"LARM_FILE_URLS": places}))
    assert opens("file:///srv/it/a%20b.odt") == "smb://nas/it/a%20b.odt"
    assert opens("file:///srv/hr/a") == "https://files.example/hr/a"
    assert opens("file:///etc/passwd") == ""
    assert opens("http://wiki/") == "http://wiki/"


@pytest.mark.parametrize(
    "places",
    [
        {"/srv/": "smb://nas/"},
        {"file:///srv": "smb://nas/"},
        {"file:///srv/": "javascript:alert(1)//"},
        {"file:///srv/": 3},
    ],
)
def test_where_files_are_opened_is_checked(places: dict[str, object]) -> None:
    """A link that runs a script, for one."""
    with pytest.raises(ConfigError, match="LARM_FILE_URLS="):
        OpenableUrls.from_settings(Settings({"LARM_FILE_URLS": places}))
