"""Tells error pages and login forms from pages, where a host answers 200 or redirects.

    errors.looks_like("wiki:80", page, before)     # SOFT_404, LOGIN, None: a page; WAIT: ask first

Before a changed page is believed, the crawl fetches a made-up URL of the host, once a run. Other
URLs with the same answer are the host's error page or login. The check also catches error pages
that differ at each answer: they share words with the made-up URL's answers and none with the stored
page. A server that answers 404 for made-up URLs may still send a fault message in place of a page.
A page that has lost its words is therefore fetched once more, and compared with other lost pages of
its host.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from enum import Enum

import msgspec

from larmspider.extraction.texts.error_page import (
    LEAST_PAIRS,
    Lost,
    Pairs,
    is_fault,
    likeness,
    lost,
    pairs_to_keep,
    says_another_thing,
)
from larmspider.extraction.texts.fingerprint import asked_password, asks_password, error_signature
from larmspider.frontier.hosts import Host
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.part import HostNotes, Note, NotesMemory, Part
from larmspider.frontier.storage.records import FetchRecord
from larmspider.items import Page
from larmspider.learned.deletes.table import Observation

MANY = 3
"""If more than 3 pages with texts of their own get one text in a run, that text is not a page."""
MAX_TEXTS = 2_000
"""Changed texts of a host that a run compares, some 400 bytes each. Beyond them the comparison
restarts."""
_LEAST_ANSWERS, _MOST_ANSWERS = 2, 3
"""Made-up URLs of a host in a run. The third is for two answers that are alike by chance."""
MAX_LOST = 6
"""Lost pages of a host that a run compares, the last ones: 30 KB each."""
LEAST_TEXT = 20
"""Characters; a page whose text was and is shorter is not compared."""


class Wait(Enum):
    """``WAIT``: a page cannot be judged before the made-up URL is answered. ``ONCE_MORE``: the page
    itself has to be fetched once more, too."""

    WAIT = "wait"
    ONCE_MORE = "once more"


WAIT, ONCE_MORE = Wait.WAIT, Wait.ONCE_MORE


class Probe(msgspec.Struct, array_like=True):
    """The answer for a made-up URL. ``wanted``: the URL is still to be fetched. ``unread``: the
    answer was a 200 whose body could not be read."""

    url: str
    wanted: bool = True
    out: bool = False
    error: bytes = b""
    password: bool = False
    target: str = ""
    unread: bool = False
    pairs: Pairs | None = None
    """The pairs of words of all answers that were pages; None: no answer was one."""
    answers: int = 0

    def ask_again(self) -> None:
        """The words that the error page has each time."""
        self.url, self.wanted = made_up_url(self.url), True

    def answered(self, page: Page | None) -> None:
        """Note the answer for the made-up URL. ``page``: the page of a 200 or of a redirect; None
        for any other answer, which shows that the host reports errors by status. If ``page`` is
        unread, all other unread pages of this host are doubted."""
        self.wanted = self.out = False
        self.answers += 1
        if self.answers > 1:
            if page is not None and page.status == 200 and self.pairs is not None:
                self.pairs &= pairs_to_keep(page)
            return
        if page is None:
            return
        self.target = redirect_target(page)
        if page.status == 200 and not (page.unread and len(page.text) < LEAST_TEXT):
            self.error, self.password = error_signature(page), asks_password(page)
            self.pairs = pairs_to_keep(page)
        elif page.status == 200:
            self.unread = True

    def released(self) -> None:
        """The request was not made."""
        self.out = False


class HostProbe(Note):
    """The made-up URL of a host in this run. ``texts``: the signatures of stored texts that were
    replaced by one text, by that text. ``lost``: pages that have lost their words."""

    probe: Probe | None = None
    texts: dict[bytes, set[bytes]] = {}
    lost: list[Lost] = []

    def memory(self, packed_bytes: int) -> int:
        return self.least_bytes + 400 * len(self.texts) + 30_000 * len(self.lost)


class ErrorPages(Part):
    def __init__(self, notes: NotesMemory) -> None:
        self._hosts = HostNotes(notes, "probes", HostProbe, of_run=True)
        self._probing: set[str] = set()
        """Hosts whose made-up URL will be fetched, or is being fetched."""

    def __repr__(self) -> str:
        return f"<ErrorPages {len(self._probing)} made-up URLs wait>"

    def save(self) -> None:
        self._hosts.save()

    def forget(self, host: str) -> None:
        self._hosts.forget(host)
        self._probing.discard(host)

    def looks_like(
        self,
        host: str,
        page: Page,
        before: FetchRecord,
        *,
        stored: Page | None = None,
        first: Page | None = None,
    ) -> Observation | Wait | None:
        """Judge the answer of a revisit that is a redirect, or a 200 whose text differs
        from ``before``. None: it is the page, changed or moved. ``stored``: the page as it was, if
        known. ``first``: the answer to a visit 2 s earlier."""
        mine = self._hosts.of(host)
        target = redirect_target(page)
        if not target and asks_password(page) and not asked_password(before.link_signature):
            return Observation.LOGIN
        if mine.probe is None:
            mine.probe = Probe(made_up_url(page.url))
            self._probing.add(host)
        if mine.probe.wanted:
            return WAIT
        if target:
            same = target == mine.probe.target
            return Observation.MOVED_TO_ONE if same else None
        if page.unread and len(page.text) < LEAST_TEXT:
            # two unread answers cannot be compared: the page stays as it was
            return Observation.EMPTY if mine.probe.unread else None
        if len(page.text) < LEAST_TEXT and (stored is None or len(stored.text) < LEAST_TEXT):
            return None
        error = error_signature(page)
        if error == mine.probe.error:
            return Observation.LOGIN if mine.probe.password else Observation.SOFT_404
        if stored is not None and (found := _like_error(mine.probe, page, stored, first)):
            if mine.probe.wanted:
                self._probing.add(host)
            return found
        if stored is not None and (found := self._lost(host, page, stored, first)):
            return found
        # pages may differ by numbers alone: of these each has a text of its own
        if len(mine.texts) >= MAX_TEXTS:
            mine.texts.clear()
        earlier = mine.texts.setdefault(error_signature(page, numbers=True), set())
        if len(earlier) <= MANY:
            earlier.add(before.signature or before.digest)
        self._hosts.touch(host)
        return Observation.LOGIN if len(earlier) > MANY else None

    def _lost(
        self, host: str, page: Page, stored: Page, first: Page | None
    ) -> Observation | Wait | None:
        """EMPTY for a fault in place of a page."""
        if (found := lost(page, stored)) is None:
            return None
        if first is None:
            return ONCE_MORE
        mine = self._hosts.of(host)
        mine.lost = [one for one in mine.lost if one.url != page.url]
        seen = Observation.EMPTY if is_fault(found, first, mine.lost) else None
        mine.lost = [*mine.lost, found][-MAX_LOST:]
        self._hosts.touch(host)
        return seen

    def own_fetch(self, host: Host, now: float, allowed: Callable[[str], bool]) -> OwnFetch | None:
        """The made-up URL, if it has to be fetched now."""
        name = host.record.host
        probe = self._probe_of(name)
        if probe is None or not probe.wanted or probe.out:
            return None
        if not allowed(probe.url):
            probe.wanted = False
            self._probing.discard(name)
            return None
        probe.out = True
        return OwnFetch(
            FetchKind.MADE_UP,
            probe.url,
            lambda: self._probe_released(name),
            lambda _answer, _entries, page: self._probe_answered(name, page),
        )

    def _probe_of(self, host: str) -> Probe | None:
        if host not in self._probing:
            return None
        return self._hosts.of(host).probe

    def _probe_released(self, host: str) -> None:
        if (probe := self._probe_of(host)) is not None:
            probe.released()

    def _probe_answered(self, host: str, page: Page | None) -> None:
        if (probe := self._probe_of(host)) is not None:
            probe.answered(page)
        self._probing.discard(host)

    def next_time(self, host: str) -> float | None:
        """0.0 if the made-up URL of a host has to be fetched."""
        if host not in self._probing:
            return None
        probe = self._probe_of(host)
        return 0.0 if probe is not None and probe.wanted and not probe.out else None

    def blocks(self, host: Host) -> bool:
        """Whether the made-up URL is being asked for: the host's pages wait for the answer."""
        name = host.record.host
        return name in self._probing and (probe := self._probe_of(name)) is not None and probe.out


def redirect_target(page: Page) -> str:
    """Where the page redirects, without the query; "" for a page that does not."""
    if not 300 <= page.status < 400:
        return ""
    for link in page.links:
        if link.type == 2:
            return link.url.partition("?")[0]
    return ""


def _like_error(
    probe: Probe, page: Page, stored: Page, first: Page | None
) -> Observation | Wait | None:
    """Whether a page has become an error page with words that vary with each answer."""
    if probe.pairs is None:
        return None
    found = likeness(probe.pairs, page, stored)
    if not found.is_lost:
        return None
    if probe.answers < _LEAST_ANSWERS:
        probe.ask_again()
        return WAIT
    if found.is_error:
        return Observation.LOGIN if probe.password else Observation.SOFT_404
    if found.shared is not None:
        if found.shared and probe.answers < _MOST_ANSWERS:
            probe.ask_again()
            return WAIT
        return None
    if len(probe.pairs) >= LEAST_PAIRS:
        return None  # the page had all of them before
    if first is None:
        return ONCE_MORE
    return Observation.EMPTY if says_another_thing(first, page) else None


def made_up_url(url: str) -> str:
    """A URL in the same folder that does not exist."""
    folder = url.partition("?")[0].rpartition("/")[0]
    return f"{folder}/larmspider-{uuid.uuid4().hex[:12]}"
