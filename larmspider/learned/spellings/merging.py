"""Merges URLs of one page: judges each new URL, and learns from the results of fetched URLs.

    new = merger.admit(entries)              # the new URLs to queue; the others are merged
    merger.final(host, key, visit)           # a URL has its final state

A URL with the canonical form of a known URL may be the same page (urls/equivalence.py). The proofs
of its host decide (aliases.py): it is queued, fetched for a comparison, held, or merged. A
held URL counts as merged for now. A merged URL is queued again if its rule fails, or if the URL
that stands for it is no longer a 200; a held URL also if no verdict comes before the run ends.
trials.py compares two URLs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from larmspider.frontier.part import HostNotes, Note, Part
from larmspider.frontier.storage.records import (
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    host_of,
    url_key,
)
from larmspider.items import REDIRECT, Page
from larmspider.learned.spellings.aliases import (
    PROOFS,
    SAMPLE,
    STATE_WORDS,
    Decision,
    HostAliases,
    Outcome,
    RuleState,
    Stage,
    Trial,
)
from larmspider.learned.spellings.known import SLICE, Spellings
from larmspider.learned.spellings.sessions import SessionNames
from larmspider.learned.spellings.trials import Trials
from larmspider.urls.equivalence import RULES, SESSION_ID, names_of
from larmspider.urls.normalizer import UrlForms
from larmspider.urls.session_ids import tokens_of, without

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier

UNDONE = "undone"
"""The note that counts how many merged URLs were queued again: an index by merged URLs is stale
when it grows."""
MAX_MET = 2_000
"""URLs of a host that are remembered because they may have a session id."""


class HostSessions(Note):
    """Session ids that the pages of a host have shown in this run. ``met``: queued URLs with such a
    parameter, by key."""

    least_bytes = 600
    names: SessionNames = msgspec.field(default_factory=SessionNames)
    met: dict[bytes, str] = {}


class Party(NamedTuple):
    """A known URL that may stand for another one; ``digest`` is None until it is stored."""

    key: bytes
    url: str
    digest: bytes | None


class Merger(Part):
    """``proofs``: the number of equal pairs that prove a rule on a host; 0: no URLs are merged."""

    def __init__(self, frontier: Frontier, forms: UrlForms, proofs: int = PROOFS) -> None:
        self._frontier, self._forms = frontier, forms
        self.is_on = proofs > 0
        self.known = Spellings(frontier, forms, proofs)
        self.trials = Trials(self.known, frontier, forms)
        self._sessions = HostNotes(frontier.notes, "sessions", HostSessions, of_run=True)

    def of(self, host: str) -> HostAliases:
        """The proofs of a host."""
        return self.known.hosts.of(host)

    @property
    def stand_ins(self) -> dict[str, str]:
        """The exact form of each merged URL that was seen lately, and of the URL that stands for
        it."""
        return self.known.stand_ins

    def recover(self, hosts: Sequence[str]) -> None:
        """Load what earlier runs learned of these hosts."""
        for _ in self.known.hosts.noted(hosts):
            pass

    def forget(self, host: str) -> None:
        self.known.forget(host)
        self._sessions.forget(host)

    def save(self) -> None:
        self.known.hosts.save()
        self._sessions.save()
        if self.known.undone:
            backend = self._frontier.backend
            before = int(backend.note(UNDONE) or b"0")
            backend.put_note(UNDONE, b"%d" % (before + self.known.undone))
            self.known.undone = 0

    # new URLs

    def admit(self, entries: Sequence[QueuedUrl]) -> Sequence[QueuedUrl]:
        """Returns the URLs of a batch that are to be queued; the others, if new, are merged now."""
        backend, here = self._frontier.backend, dict[bytes, list[QueuedUrl]]()
        guesses = [self._guess_of(entry) for entry in entries]
        asked = [guess for guess in guesses if guess]
        known = dict(zip(asked, backend.guessed(asked), strict=True))
        states = dict(zip(asked, backend.check(asked), strict=True))
        wanted = []
        for entry, guess in zip(entries, guesses, strict=True):
            if guess:
                candidates = [key for key in known[guess] if key != entry.key]
                early = self.of(entry.host).early.get(guess, entry.key)
                candidates += [early] if early != entry.key else []
                if guess != entry.key:
                    entry.guess = guess
                    if states[guess] is not UrlState.UNKNOWN:
                        candidates.append(guess)
                parties = [self._party(entry.host, key) for key in candidates]
                parties += [
                    Party(one.key, one.url, None)
                    for one in here.get(guess, ())
                    if one.key != entry.key
                ]
                if parties and self._is_merged(entry, [one for one in parties if one]):
                    continue
                here.setdefault(guess, []).append(entry)
                self._remember_token(entry)
            wanted.append(entry)
        return wanted

    def _remember_token(self, entry: QueuedUrl) -> None:
        """Remember a queued URL that may have a session id."""
        if not tokens_of(entry.url):
            return
        sessions = self._sessions.of(entry.host)
        if len(sessions.met) < MAX_MET and sessions.names.open_in(entry.url):
            sessions.met[entry.key] = entry.url
            self._sessions.touch(entry.host)

    def saw(self, entry: QueuedUrl, page: Page) -> None:
        """A page has arrived. Its links may show that a parameter of the host is a session id."""
        if not (tokens_of(entry.url) and self._forms.may_have_sessions(entry.host)):
            return
        names = self._sessions.of(entry.host).names
        here = [link.url for link in page.links if link.exact and host_of(link.url) == entry.host]
        if found := names.saw(entry.url, here):
            self._learn_sessions(entry.host, found)

    def _learn_sessions(self, host: str, names: Sequence[str]) -> None:
        """Compare remembered URLs that are still queued with the first URL of each page. Each pair
        is a proof like any other."""
        aliases, backend = self.of(host), self._frontier.backend
        if aliases.rule(SESSION_ID).state is RuleState.OFF:
            return
        aliases.sessions += [name for name in names if name not in aliases.sessions]
        self.known.hosts.touch(host)
        for key, url in self._sessions.of(host).met.items():
            bare = url_key(self._forms(without(url, aliases.sessions)).normalized)
            first = aliases.early.setdefault(bare, key)
            if first == key or self.trials.is_second(key, host) or backend.entry(key) is None:
                continue
            self.trials.begin(host, aliases, Trial(SESSION_ID, key, first, Stage.FETCHING))

    def _guess_of(self, entry: QueuedUrl) -> bytes:
        """The key of the canonical form; b"" for a Request that is more than a URL."""
        if entry.payload:
            return b""
        normalized, exact = self._forms(entry.url)
        if url_key(exact) != entry.key:
            return b""
        if sessions := self.of(entry.host).sessions:
            normalized = self._forms(without(entry.url, sessions)).normalized
        return entry.key if normalized == exact else url_key(normalized)

    def _party(self, host: str, key: bytes) -> Party | None:
        """The URL of a key, if it is waiting or stored with status 200. For a merged URL, the URL
        that stands for it. None for all other URLs."""
        backend = self._frontier.backend
        merged = backend.merged(key)
        key = key if merged is None else merged.into
        if (entry := backend.entry(key)) is not None:
            return Party(key, entry.url, None)
        visit = self.known.first(host, key)
        return None if visit is None else Party(key, visit.url, visit.digest)

    def _is_merged(self, entry: QueuedUrl, parties: Sequence[Party]) -> bool:
        """Whether a URL is known, or need not be queued: then it is merged, or only counted."""
        if self._frontier.backend.check([entry.key])[0] is not UrlState.UNKNOWN:
            return False
        aliases = self.of(entry.host)
        found_on = self._forms(entry.from_page).exact if entry.link_type == REDIRECT else ""
        best: tuple[tuple[bool, int, bool], Party, int] | None = None
        for party in parties:
            needed = self.known.needed(entry.host, entry.url, party.url)
            if not needed:
                continue
            if found_on and found_on == self._forms(party.url).exact:
                self._prove(entry.host, needed)
                return False
            off = bool(needed & aliases.mask(RuleState.OFF))
            rank = off, aliases.open_in(needed).bit_count(), party.digest is None
            if best is None or rank < best[0]:
                best = rank, party, needed
        if best is None:
            return False
        _, party, needed = best
        return self._decide(entry, party, needed, aliases)

    def _decide(self, entry: QueuedUrl, party: Party, needed: int, aliases: HostAliases) -> bool:
        self.known.hosts.touch(entry.host)
        sample = int.from_bytes(entry.key[-4:], "big") % SAMPLE == 0
        decision = aliases.decide(needed, sample=sample)
        full = aliases.is_full(needed)
        if decision is Decision.FETCH or (full and decision is not Decision.MERGE):
            return False
        if full:
            aliases.count_beyond(needed)
            self._frontier.seen.add(entry.exact)
            return True
        if decision is Decision.TRY:
            rule = aliases.open_in(needed) or needed & -needed
            stage = Stage.WAITING if party.digest is None else Stage.FETCHING
            trial = Trial(rule, entry.key, party.key, stage)
            self.trials.begin(entry.host, aliases, trial)
            if stage is Stage.FETCHING:
                return False
        self._frontier.backend.merge([MergedUrl(entry, needed, party.key)])
        aliases.count(needed, 1)
        if aliases.open_in(needed):
            self.known.holding.add(entry.host)
        self._frontier.seen.add(entry.exact)
        self.known.remember(entry.exact, party.url)
        return True

    def _prove(self, host: str, needed: int) -> None:
        """A redirect from one URL to the other, by one rule and others that are proven."""
        aliases = self.of(host)
        rule = aliases.open_in(needed)
        if rule.bit_count() == 1 and not needed & aliases.mask(RuleState.OFF):
            self.known.hosts.touch(host)
            aliases.prove(rule, Outcome.SAME)

    # pages

    def changing(self, host: str) -> Collection[bytes]:
        """The words before numbers of a host that change from fetch to fetch."""
        changing = self.of(host).changing
        return frozenset(changing) if changing else ()

    def merged(self, merged: MergedUrl) -> None:
        """A page that was fetched is merged now: queue it again if its pair got another verdict
        since it arrived."""
        key, aliases = merged.entry.key, self.of(merged.entry.host)
        if merged.rules & ~aliases.mask(RuleState.PROVEN) and not (
            self.trials.is_second(key, merged.entry.host) or key in aliases.equal
        ):
            self.known.queue_again([key])
        elif merged.rules:
            self._move(merged.entry.host, key, merged.into)

    def _move(self, host: str, key: bytes, into: bytes) -> None:
        """URLs that were merged into a URL which is merged itself now get its stand-in."""
        backend, aliases, first = self._frontier.backend, self.of(host), self.known.url_of(into)
        self.trials.moved(host, aliases, key, into)
        while found := backend.merged_into(key, SLICE):
            moved = []
            for one in filter(None, map(backend.merged, found)):
                if needed := self.known.needed(host, one.entry.url, first):
                    aliases.count(one.rules, -1)
                    aliases.count(needed, 1)
                    moved.append(MergedUrl(one.entry, needed, into))
                    self.known.remember(self._forms(one.entry.url).exact, first)
                else:
                    self.known.queue_again([one.entry.key])
            backend.merge(moved)
            self.known.hosts.touch(host)
            if aliases.held:
                self.known.holding.add(host)

    # ends

    def is_question(self, key: bytes, host: str) -> bool:
        return self.trials.is_question(key, host)

    def final(self, host: str, key: bytes, visit: FetchRecord) -> None:
        self.trials.ended(host, key, visit)
        if not visit.stands:
            self.known.queue_merged_into(host, key)
        elif key in (gone := self.of(host).gone):
            gone.remove(key)  # it is there again
            self.known.hosts.touch(host)

    # what is left to do

    @property
    def wants_turn(self) -> bool:
        """Whether work() may have something to do once an answer is in."""
        return bool(self.known.holding or self.known.undoing)

    def has_work(self, *, spent: bool) -> bool:
        if spent:
            return False
        return bool(self.known.undoing) or any(map(self._is_stuck, self.known.holding))

    def _is_stuck(self, host: str) -> bool:
        """Whether URLs of a host are held and nothing of it is queued that may bring a verdict."""
        aliases = self.of(host)
        counts = self._frontier.backend.counts(host)
        under_way = sum(trial.rule for trial in aliases.trials)
        waiting = counts.to_fetch or counts.leased or under_way
        return bool(aliases.held) and not waiting

    def work(self, now: float) -> bool:
        """Queue some merged URLs again: URLs whose rule is off, and URLs that are held on hosts
        that can no longer produce a verdict. Returns False if there were none."""
        for host in list(self.known.undoing):
            aliases = self.of(host)
            if self._undo(host, aliases, aliases.undo):
                return True
            self.known.undoing.discard(host)
        for host in list(self.known.holding):
            aliases = self.of(host)
            if not aliases.held:
                self.known.holding.discard(host)
            elif self._is_stuck(host):
                for rule in RULES.values():
                    if aliases.held & rule:
                        self.trials.promote(host, rule)
                if aliases.trials or self._undo(host, aliases, aliases.held):
                    return True
        return False

    def _undo(self, host: str, aliases: HostAliases, rules: int) -> bool:
        backend, found = self._frontier.backend, []
        limit = SLICE
        while True:
            keys = backend.merged_of(host, limit)
            found = [
                key
                for key in keys
                if key not in aliases.equal and (one := backend.merged(key)) and one.rules & rules
            ]
            if found or len(keys) < limit:
                break
            limit *= 4
        self.known.hosts.touch(host)
        if not found:
            aliases.undo &= ~rules
            aliases.clear_count(rules)
            return False
        self.known.queue_again(found[:SLICE])
        return True

    def hosts_by_rule(self) -> dict[tuple[str, str], int]:
        """The number of hosts by rule and state of the rule, a word."""
        found: Counter[tuple[str, str]] = Counter()
        for _, aliases in self.known.hosts.noted(self._frontier.hosts):
            for bit, record in aliases.rules.items():
                found[next(names_of(bit)), STATE_WORDS[record.state]] += 1
        return dict(found)

    # links

    def linked(self, exact: str, key: bytes) -> None:
        merged = self._frontier.backend.merged(key)
        if merged is not None and (url := self.known.url_of(merged.into)):
            self.known.remember(exact, url)
