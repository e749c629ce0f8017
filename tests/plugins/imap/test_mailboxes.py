"""imaps:// against a real Dovecot: messages, their rights, and a server that is away."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from larmspider.access.connected import AwayError
from larmspider.access.lists import AccessList
from larmspider.fetch import errors
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import read_sites_file
from larmspider.index.access import Access
from larmspider.plugins.imap import connector
from larmspider.plugins.imap.connector import ImapConnector
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from tests.support.crawling import crawl, records
from tests.support.servers.dovecot import Dovecot, needs_dovecot

pytestmark = [pytest.mark.acceptance, needs_dovecot]

NOTHING = {"If-None-Match": "", "If-Modified-Since": ""}


def mail(subject: str, text: str) -> bytes:
    head = f"From: ben@corp.example\r\nTo: anna@corp.example\r\nSubject: {subject}\r\n"
    return f"{head}Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n".encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dovecot]:
    with Dovecot(tmp_path_factory.mktemp("imap")) as running:
        running.put("anna", "INBOX", mail("tides", "harbour at noon"), mail("second", "harbour"))
        running.put("anna", "Projekte/Größe", mail("shared", "harbour shared"))
        with running.client("anna") as client:
            client.setacl("Projekte/Größe", "ben", "lr")
            client.setacl("Projekte/Größe", "$hr", "lr")
        yield running


@contextmanager
def reader(server: Dovecot, folder: Path, **account: str) -> Iterator[ImapConnector]:
    sites = read_sites_file(server.sites(folder, **account))
    found = ImapConnector(sites, Limits(max_bytes=10_000, document_bytes=20_000))
    try:
        yield found
    finally:
        found.close()


def test_each_message_is_a_document_with_the_list_of_its_mailbox(
    server: Dovecot, tmp_path: Path
) -> None:
    settings = {"LARM_SITES_FILE": str(server.sites(tmp_path))}
    ran = crawl(server.url(), tmp_path, **settings)
    assert ran.status == 0, ran.err[-3000:]
    stored = records(tmp_path / "crawl" / "store.log")
    mails = [line for line in stored if line["url"].endswith(".eml")]
    assert sorted(line["title"] for line in mails) == ["second", "shared", "tides"]
    assert {line["mime-type"] for line in mails} == {"message/rfc822"}
    assert found_by(tmp_path, "user:anna") == {"second", "shared", "tides"}
    assert found_by(tmp_path, "user:ben") == found_by(tmp_path, "group:hr") == {"shared"}
    with server.client("anna") as client:
        client.setacl("Projekte/Größe", "ben", "l")
        client.setacl("INBOX", "$hr", "lr")
        client.select_folder("INBOX")
        assert client.search("UNSEEN") == [1, 2]  # reading changes nothing
        client.append("INBOX", mail("third", "harbour three"))
    ran = crawl(server.url(), tmp_path, refresh="all", **settings)
    assert ran.status == 0, ran.err[-3000:]
    assert found_by(tmp_path, "user:ben") == set()
    assert found_by(tmp_path, "group:hr") == {"second", "shared", "third", "tides"}


def found_by(folder: Path, principal: str) -> set[str]:
    whole = Searcher.open(folder / "crawl" / "index")
    access = Access(("file://",), (), frozenset({"everyone", "authenticated", principal}))
    return {hit.title for hit in whole.seen_by(access).search(SearchRequest("harbour", 10)).hits}


def test_bad_input(server: Dovecot, tmp_path: Path) -> None:
    with reader(server, tmp_path) as anna:
        for path in ("INBOX/1-1.eml", "Nothing/", "Nothing/1-1.eml", "INBOX/x.eml", "robots.txt"):
            assert anna.read(server.url(path), NOTHING).status == 404, path
        with pytest.raises(errors.Refused):
            anna.read("imaps://127.0.0.1:9/INBOX/", NOTHING)
        assert 'auth = "basic"' in anna.why_not("imaps://elsewhere.example/INBOX/")
    with reader(server, tmp_path, password="wrong") as wrong:
        for _ in range(2):
            with pytest.raises(errors.SignInRefused, match="name or the password is wrong"):
                wrong.read(server.url("INBOX/"), NOTHING)
        assert not wrong.is_mounted(server.url())


def test_a_server_that_restarts_and_one_that_is_away(server: Dovecot, tmp_path: Path) -> None:
    with reader(server, tmp_path) as anna:
        first = anna.read(server.url("INBOX/"), NOTHING)
        server.stop()
        with pytest.raises((errors.Refused, errors.ConnectionLost)):
            anna.read(server.url("INBOX/"), NOTHING)
        assert not anna.is_mounted(server.url())
        server.start()
        assert anna.read(server.url("INBOX/"), NOTHING).body == first.body
        (found,) = anna.files(server.url("INBOX/"), [server.url("INBOX/1-1.eml")])
        assert (found.why, found.list.kind) == ("", AccessList.simple(["everyone"]).kind)


def test_a_denied_address_is_not_asked(server: Dovecot, tmp_path: Path) -> None:
    sites = read_sites_file(server.sites(tmp_path))
    found = ImapConnector(sites, Limits(), DenyAddresses(["127.0.0.0/8"]))
    with pytest.raises(errors.DeniedAddress):
        found.read(server.url(), NOTHING)
    is_away(found, server.url())


def test_a_name_that_leads_to_a_denied_address_when_it_is_looked_up_again(
    server: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "refuse_denied", lambda *_: None)  # another address before
    found = ImapConnector(
        read_sites_file(server.sites(tmp_path)), Limits(), DenyAddresses(["127.0.0.0/8"])
    )
    with pytest.raises(errors.DeniedAddress):
        found.read(server.url("INBOX/"), NOTHING)


def is_away(reader: ImapConnector, base: str) -> None:
    """The pass over rights goes on without this server."""
    assert not reader.is_mounted(base)
    with pytest.raises(AwayError):
        list(reader.files(f"{base}INBOX/", [f"{base}INBOX/1-1.eml"]))


def test_deleted_messages_are_left_out(server: Dovecot, tmp_path: Path) -> None:
    server.put("anna", "Old", mail("kept", "a"), mail("deleted", "b"))
    with server.client("anna") as client:
        client.select_folder("Old")
        client.delete_messages([2])
    with reader(server, tmp_path) as anna:
        answer = anna.read(server.url("Old/"), NOTHING)
        assert answer.counts == {"larm/left_out/deleted": 1}
        (name,) = re.findall(rb"(\d+-1).eml</a>", answer.body)
        assert b"-2.eml" not in answer.body
        for number, status in ((1, 200), (2, 404), (0, 404), (2**32, 404)):
            path = f"Old/{name.decode()[:-2]}-{number}.eml"
            assert anna.read(server.url(path), NOTHING).status == status
        moved = anna.read(server.url("inbox/1-1.eml"), NOTHING)
        assert (moved.status, moved.headers["Location"]) == (301, server.url("INBOX/1-1.eml"))


def test_a_large_message_comes_in_pieces(server: Dovecot, tmp_path: Path) -> None:
    lines = b"".join(b"%070d\r\n" % number for number in range(40_000))
    server.put("anna", "Large", whole := mail("large", "x") + lines)
    sites = read_sites_file(server.sites(tmp_path))
    url = server.url("Large/")
    for limits in (Limits(document_bytes=1_000, blob_bytes=10_000_000), Limits()):
        found = ImapConnector(sites, limits)
        (name,) = re.findall(rb"(\d+-1.eml)</a>", found.read(url, NOTHING).body)
        answer = found.read(url + name.decode(), NOTHING, tmp_path / "blobs")
        body = answer.blob.path.read_bytes() if answer.blob else answer.body
        assert bool(answer.blob) == bool(limits.blob_bytes)
        assert body == whole
        found.close()


def test_too_many_connections_are_no_wrong_password(server: Dovecot, tmp_path: Path) -> None:
    conf = server.folder / "conf"
    text = conf.read_text()
    server.stop()
    conf.write_text(f"{text}\nmail_max_userip_connections = 1\n")
    server.start()
    with reader(server, tmp_path) as anna:
        with server.client("anna"):
            with pytest.raises(errors.ConnectionLost, match="Maximum number of connections"):
                anna.read(server.url("INBOX/"), NOTHING)
            is_away(anna, server.url())
        assert anna.read(server.url("INBOX/"), NOTHING).status == 200
    server.stop()
    conf.write_text(text)
    server.start()


GREETING = b"* OK ready\r\n"
CAPABILITIES = b"* CAPABILITY IMAP4rev1\r\nTAG OK done\r\n"


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ((), "refused"),
        ((b"* BYE too busy\r\n",), "refused"),
        ((GREETING, CAPABILITIES), "reset"),
        ((GREETING, CAPABILITIES, b"TAG NO [UNAVAILABLE] later\r\n"), "reset"),
    ],
)
def test_a_server_that_ends_the_connection_while_signing_in(
    server: Dovecot, tmp_path: Path, lines: tuple[bytes, ...], kind: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*server.authority.issue("127.0.0.1"))
    with socket.create_server(("127.0.0.1", 0)) as listening, reader(server, tmp_path) as anna:

        def run() -> None:
            with suppress(OSError):
                while True:
                    with context.wrap_socket(listening.accept()[0], server_side=True) as one:
                        tag = b""
                        for line in lines:
                            one.sendall(line.replace(b"TAG", tag))
                            tag = one.recv(1000).partition(b" ")[0]

        threading.Thread(target=run, daemon=True).start()
        base = f"imaps://127.0.0.1:{listening.getsockname()[1]}/"
        for _ in range(2):
            with pytest.raises(Exception, match="127") as raised:
                anna.read(f"{base}INBOX/", NOTHING)
            assert errors.kind_of(raised.value) == kind
        is_away(anna, base)
        listening.shutdown(socket.SHUT_RDWR)
