"""A session and a server that is silent, late or wrong, against a stand-in for the server."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest

from larmspider.access.lists import AccessList
from larmspider.fetch import errors
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import Sites
from larmspider.plugins.smb import connector
from larmspider.plugins.smb.connector import Links, Place, SmbConnector, Spot
from larmspider.plugins.smb.link import Account, Link, LostError, SignInError, StatusError
from larmspider.plugins.smb.messages import HEADER, MAGIC, Reply, close, query_directory

NEGOTIATE, SESSION_SETUP, TREE_CONNECT, CLOSE = 0, 1, 3, 6
NOTHING = {"If-None-Match": "", "If-Modified-Since": ""}


class Server:
    """Negotiates SMB 2.1, lets guests in, and answers CLOSE. ``silent``: commands without an
    answer. ``late``: the number of CLOSE requests whose answers come after a later one."""

    def __init__(self, *silent: int, late: int = 0) -> None:
        self.silent, self.late, self.setups, self.wrong_id = silent, late, 0, False
        self.ended = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def link(self, secs: float = 5.0) -> Link:
        return Link("127.0.0.1", self.port, Account(), secs)

    def _run(self) -> None:
        held = list[bytes]()
        with suppress(OSError), self._listening, self._listening.accept()[0] as one:
            while head := one.recv(4, socket.MSG_WAITALL):
                data = one.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL)
                _, _, _, _, command, _, _, _, number, *_ = HEADER.unpack_from(data)
                if command in self.silent:
                    continue
                answer = self._answer(command, number)
                if command == CLOSE and self.late:
                    self.late -= 1
                    held.append(answer)
                    continue
                for message in (*held, answer):
                    one.sendall(struct.pack(">I", len(message)) + message)
                held.clear()
        self.ended.set()

    def _answer(self, command: int, number: int) -> bytes:
        status, body = 0, bytes(60)
        if command == NEGOTIATE:
            most = 1 << 16
            form = "<HHHH16sIIIIQQHHI"
            body = struct.pack(
                form, 65, 1, 0x210, 0, bytes(16), 0, most, most, most, 0, 0, 128, 0, 0
            )
        elif command == SESSION_SETUP:
            self.setups += 1
            token = b"" if self.setups > 1 else _challenge()
            status = 0xC0000016 if token else 0
            body = struct.pack("<HHHH", 9, 0 if token else 1, 72, len(token)) + token
        elif command == TREE_CONNECT:
            body = struct.pack("<HBBIII", 16, 1, 0, 0, 0, 0x1F01FF)
        elif command == CLOSE and self.wrong_id:
            number += 1_000
        return (
            HEADER.pack(MAGIC, 64, 0, status, command, 8, 1, 0, number, 0, 7, 9, bytes(16)) + body
        )


def _challenge() -> bytes:
    """NTLM's answer to the first message."""
    fields = struct.pack("<HHI", 0, 0, 56)
    flags = 0xE28A8215
    info = struct.pack("<HHI", 4, 4, 56)
    return (b"NTLMSSP\0" + struct.pack("<I", 2) + fields + struct.pack("<I", flags) + b"12345678"
            + bytes(8) + info + bytes(8) + bytes(4))  # fmt: skip


def workers() -> int:
    return sum(one.name.startswith("msg_worker") for one in threading.enumerate())


def in_time(call: Callable[[], Any], *kinds: type[Exception], secs: float = 3.0) -> None:
    """The call raises, and soon."""
    began = time.monotonic()
    with pytest.raises(kinds):
        call()
    assert time.monotonic() - began < secs


@pytest.mark.parametrize("silent", [NEGOTIATE, SESSION_SETUP])
def test_a_server_that_falls_silent_costs_the_time_limit(silent: int) -> None:
    """Its connection and its thread end, too."""
    before, server = workers(), Server(silent)
    in_time(lambda: server.link(0.5), errors.TimedOut, errors.ConnectionLost)
    assert server.ended.wait(3)
    time.sleep(0.05)
    assert workers() == before


def test_a_share_that_falls_silent_costs_the_time_limit() -> None:
    server = Server(TREE_CONNECT)
    link = server.link()
    link._secs = 0.5
    waiting = threading.Thread(target=lambda: in_time(lambda: link.tree("a"), errors.TimedOut))
    waiting.start()
    time.sleep(0.1)
    in_time(lambda: link.tree("b"), LostError)  # it has waited for the lock
    waiting.join()
    link.close()
    assert server.ended.wait(3)


def test_threads_that_wait_for_a_session_share_its_failure() -> None:
    server, links = Server(SESSION_SETUP), Links()
    failed = list[Exception]()

    def run() -> None:
        try:
            links.link("127.0.0.1", server.port, Account(), 0.5, DenyAddresses(()))
        except errors.TimedOut as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) == 4
    assert time.monotonic() - began < 1.5


def test_a_name_that_leads_to_a_denied_address_when_it_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gets no password."""
    server, deny = Server(), DenyAddresses(["127.0.0.0/8"])
    monkeypatch.setattr(connector, "refuse_denied", lambda *_: None)  # another address before
    in_time(
        lambda: Links().link("127.0.0.1", server.port, Account(), 5.0, deny), errors.DeniedAddress
    )
    assert server.ended.wait(3)
    assert server.setups == 0


def test_the_late_answer_to_a_request_ends_no_connection() -> None:
    server = Server(late=1)
    link = server.link()
    tree = link.tree("share")
    in_time(lambda: link.ask(tree, [close()], secs=0.2), errors.TimedOut)
    for _ in range(2):
        (reply,) = link.ask(tree, [close()], secs=5.0)
        assert reply.status == 0
    assert not link.is_lost
    assert not link._given_up
    link.close()


def test_an_answer_to_no_request_ends_the_wait_of_all() -> None:
    server = Server()
    link = server.link()
    tree = link.tree("share")
    server.wrong_id = True
    in_time(lambda: link.ask(tree, [close()], secs=20.0), LostError)
    assert link.is_lost
    link.close()


# the connector

SPOT = Spot(None, None, "s", "", ("smb://nas/s/",))  # type: ignore[arg-type]


class _Tree:
    is_dfs_share, share_name, most_bytes = False, r"\\nas\s", 65_536


class _Reader(SmbConnector):
    """``replies``: the answers to its requests, in turn. An exception is raised."""

    def __init__(self, replies: Iterator[list[Reply] | Exception], **shares: AccessList) -> None:
        super().__init__(Sites(), Limits(), shares)
        self.replies = replies

    def _spot(self, place: Place) -> Spot:
        tree: Any = _Tree()
        return SPOT._replace(link=tree, tree=tree, path=place.path)

    def _ask(self, spot: Spot, messages: object) -> list[Reply]:
        found = next(self.replies)
        if isinstance(found, Exception):
            raise found
        return found


def reply(status: int = 0, info: bytes = b"") -> Reply:
    return Reply(status, bytes(64) + struct.pack("<HHI", 9, 72, len(info)) + info)


def test_an_answer_without_entries_is_the_end_of_a_folder() -> None:
    reader = _Reader(iter([[reply()]] * 10))
    spot = reader._spot(Place("nas", 445, "s"))
    assert query_directory(65_536).charge == 1
    assert list(islice(reader._entries(spot, b""), 1)) == []


def test_numbers_of_folders_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server gives the number of a deleted folder to a new one."""
    answers = [[reply(), reply(info=struct.pack("<Q", number)), reply()] for number in (5, 6)]
    reader = _Reader(iter(answers))
    spot = reader._spot(Place("nas", 445, "s"))
    assert reader._numbers_above(spot) == reader._numbers_above(spot) == {5}
    monkeypatch.setattr(connector, "LISTING_SECS", 0.0)
    assert reader._numbers_above(spot) == {6}


def test_share_lists_of_the_setting_fit_in_any_case() -> None:
    given = AccessList.simple(["group:hr"])
    reader = _Reader(iter(()), **{"smb://nas/%c3%84mter/": given})
    for url in ("smb://nas/%C3%84mter/", "smb://NAS/%C3%A4MTER/"):
        assert reader._list_of(url, SPOT) == given
    strasse = _Reader(iter(()), **{"smb://nas/strasse/": given})
    strasse._asked_list = lambda *_: "another share"  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="another share"):
        strasse._list_of("smb://nas/Stra%C3%9Fe/", SPOT)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LostError(), errors.ConnectionLost),
        (StatusError(0xC0000001), errors.Unavailable),
        (SignInError("the account is locked"), errors.SignInRefused),
        (connector._LinkError(), errors.Unavailable),
        (struct.error(), errors.BadResponse),
    ],
)
def test_errors_after_a_missing_file_have_a_kind(error: Exception, kind: type[Exception]) -> None:
    """The share is asked whether it is there."""
    missing = [reply(0xC0000034)] * 4
    reader = _Reader(iter([missing, *[error] * 20]))
    with pytest.raises(kind):
        reader.read("smb://nas/s/a.txt", NOTHING)
