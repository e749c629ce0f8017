"""Decides for each host when ETag and Last-Modified are worth sending: some validators are wrong.

    headers = validators.ask(record)               # {"If-None-Match": ...}, or none
    validators.saw(record, etag, last_modified, changed=False)      # of a 200
    if validators.wants_check(chance): ...         # of a 304: fetch it once more, without them
    validators.checked(changed=True)               # no longer believed here
    modified_at(last_modified, date, now)          # None if it is the time of the answer

A server may name the moment of the answer as Last-Modified, or answer 304 beside a changed text. A
validator is sent once validators of its kind have stayed the same beside the same text twice on
this host. After the first 304s, and later after one 304 in 20, the page is fetched at once without
validators. If its text has changed, this host gets no more validators. The same holds if a changed
text comes with an unchanged validator.
"""

from __future__ import annotations

import msgspec

from larmspider.dates import http_time
from larmspider.frontier.storage.records import FetchRecord

NOW_SECS = 5.0
"""A Last-Modified that is no further than this before Date is the time of the answer."""
PROOFS = 2
"""Times that a validator stays the same beside the same text until it is sent."""
FIRST_CHECKS = 2
"""The first 304s of a host that are checked."""
CHECKS = 20
"""One in 20 of the later 304s is checked."""
MAX_LENGTH = 1_000
"""A longer validator is not sent."""


def modified_at(last_modified: str, date: str, now: float) -> float | None:
    """When a page changed last, by its headers; None if they do not say: no Last-Modified, or
    one that is the time of the answer, lies behind it, or before 1990. Without a ``date`` that can
    be read ``now`` counts."""
    modified, answered = http_time(last_modified), http_time(date)
    answered = now if answered is None else answered
    if modified is None or modified > answered - NOW_SECS or modified < 631_152_000:
        return None
    return modified


class Kind(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. One kind of validator: how often it stayed the same
    with an unchanged text, and whether it ever stayed the same with a changed text."""

    proofs: int = 0
    lies: bool = False

    @property
    def trusted(self) -> bool:
        return self.proofs >= PROOFS and not self.lies

    def saw(self, before: str, after: str, *, changed: bool) -> None:
        if not before or before != after:
            return
        if changed:
            self.lies = True
        else:
            self.proofs = min(self.proofs + 1, 0xFFFF)


class Validators(msgspec.Struct, array_like=True):
    """The knowledge of one host's validators. New fields go to the end, with a default."""

    _etag: Kind = msgspec.field(default_factory=Kind)
    _modified: Kind = msgspec.field(default_factory=Kind)
    _checked: int = 0

    def __repr__(self) -> str:
        found = (("ETag", self._etag), ("Last-Modified", self._modified))
        words = [
            f"{name} {'lies' if kind.lies else 'is believed' if kind.trusted else 'is not sent'}"
            for name, kind in found
        ]
        return f"<Validators {', '.join(words)}>"

    def ask(self, record: FetchRecord) -> dict[str, str]:
        """The headers that make a visit conditional; empty if it should not be conditional. With an
        ETag servers ignore the date (RFC 9110 13.1.3), so only the ETag is sent."""
        headers: dict[str, str] = {}
        if record.status != 200:
            return headers
        if self._etag.trusted and 0 < len(record.etag) <= MAX_LENGTH:
            headers["If-None-Match"] = record.etag
        elif self._modified.trusted and 0 < len(record.last_modified) <= MAX_LENGTH:
            headers["If-Modified-Since"] = record.last_modified
        return headers

    def saw(self, record: FetchRecord, etag: str, last_modified: str, *, changed: bool) -> None:
        """A whole answer (200) to a revisit, with its validators: has its text changed since
        ``record``?"""
        self._etag.saw(record.etag, etag, changed=changed)
        self._modified.saw(record.last_modified, last_modified, changed=changed)

    def wants_check(self, chance: float) -> bool:
        """Whether a page is fetched at once without validators after a 304; call checked() then.
        ``chance`` is a random number from 0 to 1."""
        return self._checked < FIRST_CHECKS or chance < 1 / CHECKS

    def checked(self, *, changed: bool) -> None:
        """Note whether the fetch after a 304 returned the stored text or a changed text."""
        self._checked = min(self._checked + 1, 0xFFFF)
        self._etag.lies |= changed
        self._modified.lies |= changed
