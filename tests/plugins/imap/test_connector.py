"""imaps:// without a server: the commands that the connector sends, and missing mailboxes."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from imapclient.exceptions import IMAPClientError

from larmspider.fetch import errors
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import Sites
from larmspider.plugins.imap import connector
from larmspider.plugins.imap.connector import ImapConnector, Place, _Session, _uids, place_of

NOTHING = {"If-None-Match": "", "If-Modified-Since": ""}


class _Client:
    """A mailbox with messages of these UIDs. Message 1 has the content ``mail``."""

    def __init__(self, mail: bytes = b"", *uids: int) -> None:
        self.mail, self.uids, self.asked = mail, uids, list[str]()

    def select_folder(self, name: str, readonly: bool) -> dict[bytes, int]:
        assert readonly
        if name.startswith("refused: "):
            raise IMAPClientError(f"select failed: {name.removeprefix('refused: ')}")
        return {b"UIDVALIDITY": 7, b"UIDNEXT": 2}

    def has_capability(self, name: str) -> bool:
        return False

    def fetch(self, uids: list[int], parts: list[str]) -> dict[int, dict[bytes, Any]]:
        self.asked += parts
        found: dict[bytes, Any] = {b"RFC822.SIZE": len(self.mail)}
        for at, length in re.findall(r"<(\d+)\.(\d+)>", " ".join(parts)):
            found[b"BODY[]<%d>" % int(at)] = self.mail[int(at) : int(at) + int(length)]
        return {uids[0]: found}

    def search(self, criteria: list[str]) -> list[int]:
        self.asked.append(criteria[1])
        first, last = map(int, criteria[1].split(":"))
        return [uid for uid in self.uids if first <= uid <= last]


class _Reader(ImapConnector):
    def __init__(self, client: _Client, limits: Limits | None = None) -> None:
        super().__init__(Sites(), limits or Limits())
        self.client = client

    def _signed_in(self, place: Place) -> _Session:
        return _Session(self.client, "/", "anna")


@pytest.mark.parametrize("name", ["می\u200cخواهم", "rtl\u202eok", "👩\u200d👧", "a\u00a0b"])
def test_names_with_joiners_and_marks_of_direction_are_mailboxes(name: str) -> None:
    place = Place("mail.example", 993, (name,), None)
    assert place_of(place.url) == place


@pytest.mark.parametrize("name", ["%00", "a%0Ab", "%C2%85", ""])
def test_names_with_control_characters_are_none(name: str) -> None:
    assert place_of(f"imaps://mail.example/{name}/") is None


@pytest.mark.parametrize("size", [0, 99, 100, 250, 300])
def test_a_message_comes_in_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "PIECE", 100)
    mail = bytes(range(250)) * 2
    client = _Client(mail[:size])
    for limits in (Limits(), Limits(document_bytes=0)):
        client.asked.clear()
        assert _Reader(client, limits).read("imaps://h/I/7-1.eml", NOTHING).body == mail[:size]
        assert len(client.asked) == 3 + size // 100 + 1


def test_parts_of_a_large_mailbox_are_found_without_its_whole_list() -> None:
    client = _Client(b"", *range(1, 100_001))
    assert len(_uids(client, 50_001, 100_001)) > connector.PART
    assert client.asked == ["50001:60000"]
    client = _Client(b"", 5, 2**32 - 1)
    assert _uids(client, 0, 2**32) == [5, 2**32 - 1]
    assert len(client.asked) < 25
    client = _Client(b"", 5)
    assert (_uids(client, 6, 6), client.asked) == ([], [])


@pytest.mark.parametrize(
    ("words", "is_gone"),
    [
        ("[NONEXISTENT] Mailbox doesn't exist: x", True),
        ("Mailbox does not exist", True),
        ("[NOPERM] the list exists, but is not for you", False),
        ("cannot open an existing mailbox", False),
        ("[SERVERBUG] its index does not exist", False),
    ],
)
def test_only_a_mailbox_that_is_not_there_is_gone(words: str, is_gone: bool) -> None:
    reader, url = _Reader(_Client()), "imaps://h/refused%3A%20" + words.replace(" ", "%20")
    if is_gone:
        assert reader.read(f"{url}/7-1.eml", NOTHING).status == 404
    else:
        with pytest.raises(errors.BadResponse):
            reader.read(f"{url}/7-1.eml", NOTHING)


def test_a_slow_server_does_not_stop_the_others() -> None:
    reader, slow, end = _Reader(_Client(b"x")), threading.Event(), threading.Event()

    def wait(session: _Session) -> None:
        slow.set()
        end.wait(10)

    place = Place("slow.example", 993, ("INBOX",), None)
    thread = threading.Thread(target=lambda: reader._again(place, wait))
    thread.start()
    assert slow.wait(5)
    done = threading.Event()
    other = threading.Thread(
        target=lambda: (reader.read("imaps://other.example/I/7-1.eml", NOTHING), done.set())
    )
    other.start()
    assert done.wait(2)
    end.set()
    thread.join()
    other.join()
