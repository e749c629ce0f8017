"""The sender: each entry is taken or refused, once; the cursor never passes one that is neither."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from larmspider.pipelines.outbox.receiver import AwayError, BatchError, Sent, Unfit
from larmspider.pipelines.outbox.sender import MAX_SECS, Sender, StoppedError, dead_log
from larmspider.pipelines.outbox.spool import FOLDER, Cursor, Entry, read_entries
from tests.support.spooled import ShelfReceiver, page, spooled


class Sending:
    """A sender over ten pages, 0 to 9; ``waits`` are its pauses."""

    def __init__(self, crawl: Path, patience: int = 100) -> None:
        self.folder, self.patience = crawl / FOLDER, patience
        self.end = spooled(crawl, *(page(str(number)) for number in range(10))).offset
        self.receiver = ShelfReceiver()
        self.waits: list[float] = []
        self.troubles: list[str] = []

    def __call__(self) -> Cursor:
        Sender(self.receiver, self.folder, self.wait, lambda: 5.0).send_up_to(self.end)
        return self.cursor

    def wait(self, seconds: float) -> bool:
        if seconds:
            self.waits.append(seconds)
            self.troubles.append(self.cursor.trouble)
        return len(self.waits) < self.patience

    @property
    def cursor(self) -> Cursor:
        found = Cursor.read(self.folder, "ShelfReceiver")
        assert found is not None
        return found

    @property
    def dead(self) -> list[list[str]]:
        lines = (self.folder / dead_log("ShelfReceiver")).read_text().splitlines()
        return [line.split("\t") for line in lines]


@pytest.fixture
def sending(tmp_path: Path) -> Sending:
    return Sending(tmp_path)


def test_sends_all_in_batches(sending: Sending) -> None:
    cursor = sending()
    assert sending.receiver.batches == [list("0123"), list("4567"), list("89")]
    assert (cursor.offset, cursor.number, cursor.sent, cursor.dead) == (sending.end, 10, 10, 0)
    sending()
    assert len(sending.receiver.batches) == 3, "nothing is sent twice"


def test_a_receiver_that_is_away_is_tried_again(sending: Sending) -> None:
    """Later each time, with a new connection, and it says why; the pages are the same ones."""
    left = [AwayError("it is away"), AwayError("busy", 300), ValueError("a fault\n")]

    def answer(_: Sequence[Entry]) -> Sent:
        if left:
            raise left.pop(0)
        return Sent()

    sending.receiver.answer = answer
    cursor = sending()
    assert sending.receiver.batches[:4] == [list("0123")] * 4
    assert sending.receiver.connects == 4
    assert sending.troubles == ["it is away", "busy", "ValueError: a fault"]
    assert 0.7 < sending.waits[0] < 1.3 < 200 < sending.waits[1]
    assert (cursor.sent, cursor.trouble, cursor.since) == (10, "", 5.0)


def test_pauses_have_an_end(tmp_path: Path) -> None:
    sending = Sending(tmp_path, patience=12)
    sending.receiver.answer = lambda _: Sent(again=range(4))
    with pytest.raises(StoppedError):
        sending()
    assert max(sending.waits) <= MAX_SECS * 1.25
    assert (sending.cursor.offset, sending.cursor.trouble) == (0, "it accepts nothing now")


def test_a_stop_keeps_what_was_not_taken(tmp_path: Path) -> None:
    """The next sender begins with the batch that was under way."""
    sending = Sending(tmp_path, patience=1)

    def answer(batch: Sequence[Entry]) -> Sent:
        if batch[0].url.endswith("4"):
            raise AwayError("it is away")
        return Sent()

    sending.receiver.answer = answer
    with pytest.raises(StoppedError):
        sending()
    assert sending.cursor.number == 4
    sending.receiver.answer = lambda _: Sent()
    sending.patience = 100
    assert sending().sent == 10
    assert [one for batch in sending.receiver.batches for one in batch] == list("01234567456789")


def test_what_is_accepted_of_a_batch_is_not_sent_again(sending: Sending) -> None:
    """Some are rejected, with a reason, some are to come again."""
    answers = [Sent({1: "too old"}, again=[2]), Sent(), Sent(), Sent()]
    sending.receiver.answer = lambda _: answers.pop(0)
    cursor = sending()
    assert sending.receiver.batches[:2] == [list("0123"), ["2"]]
    assert (cursor.sent, cursor.dead) == (9, 1)
    ((when, url, stored, reason),) = sending.dead
    assert (when[:19], url, stored[:16], reason) == (
        "1970-01-01T00:00:05", "http://h/1", "1970-01-01T00:16", "too old",
    )  # fmt: skip


def test_a_batch_that_cannot_be_taken_is_halved(sending: Sending) -> None:
    """Down to the entry that is at fault; the others are taken."""

    def answer(batch: Sequence[Entry]) -> Sent:
        if any(entry.url.endswith("2") for entry in batch):
            raise BatchError("413: too\tlarge")
        return Sent()

    sending.receiver.answer = answer
    cursor = sending()
    assert sending.receiver.batches[:5] == [list("0123"), list("01"), list("23"), ["2"], ["3"]]
    assert (cursor.sent, cursor.dead, [line[3] for line in sending.dead]) == (
        9, 1, ["413: too large"],
    )  # fmt: skip


def _refuse(*names: str, reason: str = "400 no such column") -> Callable[[Sequence[Entry]], Sent]:
    """An answer that refuses these pages, all without names."""

    def answer(batch: Sequence[Entry]) -> Sent:
        return Sent({
            number: f"{reason} for {entry.url}"
            for number, entry in enumerate(batch)
            if not names or entry.url[9:] in names
        })  # fmt: skip

    return answer


def _halve(batch: Sequence[Entry]) -> Sent:
    raise BatchError('null value in column "x": Failing row contains ("' + batch[0].url + '")')


@pytest.mark.parametrize("refusal", [_refuse(), _halve])
def test_a_receiver_that_refuses_all_buries_nothing(
    tmp_path: Path, refusal: Callable[[Sequence[Entry]], Sent]
) -> None:
    """It waits, longer each time, and says why; then all are sent."""
    sending = Sending(tmp_path, patience=3)
    sending.receiver.answer = refusal
    with pytest.raises(StoppedError):
        sending()
    cursor = sending.cursor
    assert (cursor.offset, cursor.sent, cursor.dead) == (0, 0, 0)
    assert re.match(r"it refuses everything \(\d+ entries\): (400|null)", cursor.trouble)
    assert sending.waits[2] > sending.waits[0]
    assert not (sending.folder / dead_log("ShelfReceiver")).exists()
    sending.receiver.answer, sending.patience = lambda _: Sent(), 100
    assert (sending().sent, sending.cursor.dead, sending.cursor.trouble) == (10, 0, "")


def test_a_receiver_that_refuses_all_from_some_page_on_buries_nothing(tmp_path: Path) -> None:
    sending = Sending(tmp_path, patience=2)
    sending.receiver.answer = _refuse(*"456789")
    with pytest.raises(StoppedError):
        sending()
    assert (sending.cursor.number, sending.cursor.sent, sending.cursor.dead) == (4, 4, 0)


def test_a_batch_of_bad_pages_is_buried_once_others_are_taken(sending: Sending) -> None:
    sending.receiver.answer = _refuse(*"0123")
    cursor = sending()
    assert (cursor.sent, cursor.dead, cursor.number, sending.waits) == (6, 4, 10, [])
    assert [line[1][-1] for line in sending.dead] == list("0123")


def test_what_does_not_fit_is_buried_whatever_comes_with_it(sending: Sending) -> None:
    """Too large, each by itself: no fault of the receiver's."""
    sending.receiver.answer = lambda batch: Sent({n: Unfit("5 bytes") for n in range(len(batch))})
    assert (sending().dead, sending.waits) == (10, [])


def test_a_bad_page_alone_is_buried_but_not_each_that_follows(tmp_path: Path) -> None:
    """A slow crawl sends one page at a time; new pages show whether the receiver takes any."""
    sending = Sending(tmp_path, patience=2)
    ends = [entry.end for entry in read_entries(sending.folder, 0, sending.end)]
    sender = Sender(
        sending.receiver, sending.folder, sending.wait, lambda: 5.0, committed=lambda: ends[at]
    )
    sending.receiver.answer = _refuse(*"0123")
    at = 0
    sender.send_up_to(ends[0])
    assert (sender.cursor.dead, sender.cursor.number) == (1, 1)
    at = 1
    with pytest.raises(StoppedError):
        sender.send_up_to(ends[1])
    assert (sender.cursor.dead, sender.cursor.number) == (1, 1)
    at, sending.patience = 9, 100
    sender.send_up_to(ends[1])
    assert (sender.cursor.dead, sender.cursor.number, sender.cursor.sent) == (4, 10, 6)


def test_a_body_that_is_gone_is_a_dead_letter(tmp_path: Path) -> None:
    lost = page("lost")
    lost.stored_at = (0, 0)
    spooled(tmp_path, lost)
    sending = Sending(tmp_path)
    cursor = sending()
    assert (cursor.sent, cursor.dead) == (10, 1)
    assert "pagefile_0.pfl" in sending.dead[0][3]


def test_documents_with_another_list_are_written_without_a_new_page(sending: Sending) -> None:
    """Round by round, and again after an error."""
    left = [2, 2, 1]

    def renew() -> None:
        if len(left) == 3:
            left.pop()
            raise AwayError("busy")
        left.pop()

    sending.receiver.behind = lambda: len(left)  # type: ignore[method-assign]
    sending.receiver.renew_access = renew  # type: ignore[method-assign]
    Sender(sending.receiver, sending.folder, sending.wait, lambda: 5.0).renew_access()
    assert (left, sending.troubles, sending.cursor.trouble) == ([], ["busy"], "")
    assert sending.receiver.batches == []
