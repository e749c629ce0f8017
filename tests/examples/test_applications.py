"""Each of the real applications starts, lists what it has, and ends; what is missing is named."""

from __future__ import annotations

import signal
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from examples.applications.__main__ import main
from tests.support.crawling import PROJECT
from tests.support.servers.application import Application, documents
from tests.support.servers.applications import APPLICATIONS, GitWeb
from tests.support.servers.django_admin import DjangoAdmin
from tests.support.servers.processes import listens
from tests.support.servers.wikis import DokuWiki, MediaWiki

COUNT = 24
acceptance = pytest.mark.acceptance
SHOWS = {
    "dokuwiki": "/doku.php?id={}",
    "dokuwiki-sessions": "/doku.php?id={}",
    "mediawiki": "/index.php/{}",
    "usemod": "/wiki.pl?{}",
    "gitweb": "/?p=works.git;a=blob_plain;f={};hb=HEAD",
    "cgit": "/works/plain/{}",
    "hgweb": "/raw-file/tip/{}",
    "apache": "/{}",
    "lighttpd": "/{}",
    "public-inbox": "/works/{}/",
    "datasette": "/works/documents/{}",
    "trac": "/{}",
}


def get(url: str) -> str:
    try:
        with urlopen(url, timeout=60) as reply:
            return str(reply.read().decode())
    except HTTPError as error:
        with error:
            return error.read().decode()


@acceptance
@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_lists_its_documents_and_shows_them(name: str) -> None:
    app = APPLICATIONS[name](COUNT)
    if app.missing():
        pytest.skip(f"needs {' '.join(app.packages)}")
    with app:
        names = app.documents()
        assert COUNT <= len(names) < COUNT + 12
        assert "<a" in get(app.seed)
        urls = [app.url(SHOWS[name].format(one)) for one in names]
        assert {app.document_of(url) for url in urls} == names
        sentences = {one.text.partition(".")[0] for one in documents(COUNT)}
        shown = "".join(map(get, urls))
        assert not [one for one in sentences if one not in shown]
        folder, port = app.folder, app.port
    assert not folder.exists()
    assert not listens("127.0.0.1", port)


@acceptance
@pytest.mark.parametrize("name", ["dokuwiki", "mediawiki"])
def test_a_wiki_with_users_shows_others_nothing(name: str) -> None:
    wiki = {"dokuwiki": DokuWiki, "mediawiki": MediaWiki}[name]
    if wiki.missing():
        pytest.skip(f"needs {' '.join(wiki.packages)}")
    with wiki(COUNT, users={"crawler": "a secret of mine"}) as app:
        (one, *_) = app.documents()
        said = get(app.url(SHOWS[name].format(one))).lower()
        assert "permission" in said or "login required" in said
        assert app.changes() == []
        app.set_password("crawler", "another one")
        assert len(app.documents()) >= COUNT


@acceptance
@pytest.mark.parametrize(
    "kind, served, shown",
    [(GitWeb, "gitweb", "<a"), (DjangoAdmin, "django", "csrfmiddlewaretoken")],
)
def test_the_demo_serves_until_it_is_interrupted(
    kind: type[Application], served: str, shown: str
) -> None:
    if kind.missing():
        pytest.skip(f"needs {' '.join(kind.packages)}")
    command = [sys.executable, "-m", "examples.applications", served, "--documents", "20"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        name, url, count, *more = demo.stdout.readline().split()
        assert (name, count) == (served, "20")
        assert ("crawler" in more) is (served == "django")
        assert shown in get(url)
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 0


def test_the_demo_names_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["confluence"])
    assert ended.value.code == 2
    assert "confluence: expected dokuwiki, " in capsys.readouterr().err
