"""larmspider/urls/schemes.py: URLs of connectors, in canonical form, frontier and filters."""

from __future__ import annotations

import pytest

from larmspider.errors import ConfigError, InvalidURL
from larmspider.frontier.hosts import HostRecord, origin_of
from larmspider.frontier.storage.records import host_of
from larmspider.index.schema import hostname_of
from larmspider.middlewares.normalize import FROM_ELSEWHERE, FROM_THE_WEB, from_the_web
from larmspider.middlewares.scope import ScopeFilter
from larmspider.urls.canonical import canonicalize
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.schemes import is_same_source, is_source, is_source_folder, scheme_of
from larmspider.urls.seeds import read_seeds

scrapy = pytest.importorskip("scrapy")

FORMS = {
    "smb://NAS/Share/Plan.ODT": "smb://nas/share/plan.odt",
    "SMB://nas.:445/a": "smb://nas/a",
    "smb://nas:4455/a": "smb://nas:4455/a",
    "smb://u:p@nas:21/a": "smb://nas:21/a",
    "smb://u:21@nas:80/a:21": "smb://nas:80/a:21",
    "smb://u:p@nas/a/": "smb://nas/a/",
    "smb://nas\\share\\a b": "smb://nas/share/a%20b",
    "smb://nas/ÄÖ/Отчёт.TXT": "smb://nas/%C3%A4%C3%B6/%D0%BE%D1%82%D1%87%D1%91%D1%82.txt",
    "smb://nas/s/x/../y//z": "smb://nas/s/y/z",
    "smb://nas/s/?from=B.txt": "smb://nas/s/?from=b.txt",
    "smb://nas/s/a.txt?x=1": "smb://nas/s/a.txt",
    "smb://a/b": "smb://a/b",
    "smb://[::1]/s": "smb://[::1]/s",
    "imaps://Mail.example/INBOX/1-2.eml": "imaps://mail.example/INBOX/1-2.eml",
}


@pytest.mark.parametrize("url", FORMS)
def test_forms(url: str) -> None:
    assert canonicalize(url) == FORMS[url]
    assert canonicalize(FORMS[url]) == FORMS[url]


@pytest.mark.parametrize("url", ["ftp://h/", "smb:", "smb://", "smb://nas:99999/"])
def test_no_forms(url: str) -> None:
    with pytest.raises(InvalidURL):
        canonicalize(url)


def test_the_refusal_names_the_url_as_it_was() -> None:
    with pytest.raises(InvalidURL, match=r"'smb://xn--a/s'"):
        canonicalize("smb://xn--a/s")


def test_hosts() -> None:
    assert [host_of(url) for url in ("smb://nas/s", "smb://a/s", "smb://nas:4455/s")] == [
        "nas:445", "a:445", "nas:4455",
    ]  # fmt: skip
    assert origin_of("smb", "nas:445") == "smb://nas"
    assert hostname_of("smb://nas:4455/s/a") == "smb://nas"
    assert HostRecord("nas:445", "smb").is_source
    assert not HostRecord("nas:80").is_source
    assert HostPattern.parse("smb://*.example").matches("smb", "nas.example", 445)
    assert not HostPattern.parse("smb://nas").matches("https", "nas", 443)
    with pytest.raises(ConfigError):
        HostPattern.parse("gopher://nas")


def test_kinds() -> None:
    assert is_source("smb://nas/a")
    assert is_source("file:///a")
    assert not is_source("http://nas/a")
    assert is_source_folder("smb://nas/s/?from=a")
    assert scheme_of("http://h/?u=smb://nas/") is None
    assert is_same_source("smb://nas/a", "smb://other/b")
    assert not is_same_source("smb://nas/a", "file:///b")


def test_seeds_and_their_scope() -> None:
    assert read_seeds("smb://NAS/Share") == ["smb://NAS/Share"]
    with pytest.raises(ConfigError, match=r"\*\*\*@nas"):
        read_seeds("smb://user:secret@nas/share/")
    settings = scrapy.settings.Settings()
    settings.setmodule("larmspider.settings")
    scope = ScopeFilter.for_seeds(settings, ["smb://nas/share/hr/"])
    assert scope.reject_reason("smb://nas/share/hr/a.txt") is None
    assert scope.reject_reason("smb://nas/share/a.txt") == "not below a seed's folder"
    assert scope.reject_reason("smb://nas2/share/hr/a.txt") == "not below a seed's folder"
    assert scope.reject_reason("http://nas/share/hr/a.txt") is not None


def test_who_may_name_a_document_of_a_source() -> None:
    def asked(url: str, page: str) -> str | None:
        return from_the_web(scrapy.Request(url, meta={"from_page": page}), url)

    assert asked("smb://nas/s/a", "smb://nas/s/") is None
    assert asked("smb://nas/s/a", "http://wiki/") == FROM_THE_WEB
    assert asked("file:///etc/passwd", "smb://nas/s/") == FROM_ELSEWHERE
    assert asked("http://wiki/", "smb://nas/s/") is None
