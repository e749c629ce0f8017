"""Which hosts are asked conditionally."""

from __future__ import annotations

from email.utils import formatdate

import msgspec
import pytest

from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.learned.revisits.validators import PROOFS, Validators, modified_at

NOW = 1_800_000_000.0
DATE = formatdate(NOW, usegmt=True)
RECORD = FetchRecord(
    UrlState.STORED, time=NOW, status=200, etag='"1"', last_modified=formatdate(NOW - 90)
)


def kept(validators: Validators) -> Validators:
    """As a note has them."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(validators), type=Validators)


def proven(etag: bool = True) -> Validators:
    validators = Validators()
    for _ in range(PROOFS):
        assert not validators.ask(RECORD)
        modified = RECORD.last_modified
        validators.saw(RECORD, RECORD.etag if etag else "", modified, changed=False)
    return kept(validators)


def test_a_host_is_asked_conditionally_once_its_validators_have_proved_true() -> None:
    assert proven().ask(RECORD) == {"If-None-Match": '"1"'}
    assert proven(etag=False).ask(RECORD) == {"If-Modified-Since": RECORD.last_modified}


def test_validators_that_always_change_are_never_sent() -> None:
    """Last-Modified = now."""
    validators = Validators()
    for turn in range(10):
        validators.saw(RECORD, f'"{turn + 2}"', formatdate(NOW + turn), changed=False)
    assert not validators.ask(RECORD)


def test_another_text_beside_the_same_validator_is_a_lie() -> None:
    validators = proven()
    validators.saw(RECORD, RECORD.etag, "", changed=True)
    assert "If-None-Match" not in kept(validators).ask(RECORD)


def test_a_304_beside_a_changed_text_is_found_out() -> None:
    """The first 304s are checked, later ones one in twenty."""
    validators = proven()
    for _ in range(2):
        assert validators.wants_check(0.5)
        validators.checked(changed=False)
    validators = kept(validators)
    assert not validators.wants_check(0.5)
    assert validators.wants_check(0.04)
    validators.checked(changed=True)
    assert not kept(validators).ask(RECORD)


def test_only_a_page_is_asked_conditionally() -> None:
    assert not proven().ask(FetchRecord(UrlState.FAILED, status=404, etag='"1"'))
    assert not proven().ask(FetchRecord(UrlState.STORED, status=200, etag='"' + "x" * 9_999))


@pytest.mark.parametrize(
    "last_modified, expected",
    [
        (formatdate(NOW - 90, usegmt=True), NOW - 90),
        (formatdate(NOW - 4, usegmt=True), None),
        (formatdate(NOW + 4, usegmt=True), None),
        (formatdate(NOW + 9e6, usegmt=True), None),
        (formatdate(0, usegmt=True), None),
        ("Fri, 99 Foo 2027 25:61:61 GMT", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_time_of_the_answer_is_no_time_of_change(
    last_modified: str, expected: float | None
) -> None:
    assert modified_at(last_modified, DATE, 0.0) == expected
    assert modified_at(last_modified, "", NOW) == expected
