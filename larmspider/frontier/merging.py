"""Merges URLs that are one page: asked for each new URL, and told what comes of the others.

    new = merger.admit(entries)              # of new URLs those to be queued; the others are merged
    merger.ended(host, key, visit)           # a URL has its final state

A URL whose canonical form is that of a known URL may be the same page (urls/equivalence.py). What
that host has proved decides (aliases.py): it is queued, fetched to be compared, held, or merged. A
held URL is merged, too, and queued again if the rule turns out wrong, if no verdict comes before
the end, or if the URL that stands for it fails, or gives anything but a 200. How two are compared
is trials.py's.

What is known of a host's rules is kept as its note ``aliases wiki:80``, which moves with its
partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from larmspider.frontier.aliases import (
    MAX_GONE,
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
from larmspider.frontier.dispatch import schedule
from larmspider.frontier.sessions import SessionNames
from larmspider.frontier.storage.records import (
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    host_of,
    url_key,
)
from larmspider.frontier.trials import Trials
from larmspider.items import REDIRECT, Page
from larmspider.urls.equivalence import RULES, SESSION_ID, names_of
from larmspider.urls.normalizer import UrlForms
from larmspider.urls.session_ids import tokens_of, without

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier

NOTE = "aliases {host}"
UNDONE = "undone"
"""The note that counts how many merged URLs were queued again: an index by merged URLs is stale
when it grows."""
SLICE = 500
"""Merged URLs that are queued again at a time: 10 ms."""
MAX_MET = 2_000
"""URLs of a host in memory that may have a session id."""
MAX_STAND_INS = 65_536
"""URLs in memory whose page has another URL."""


class Party(NamedTuple):
    """A known URL that may stand for another one; ``digest`` is None until it is stored."""

    key: bytes
    url: str
    digest: bytes | None


class Merger:
    """``proofs``: as many equal pairs prove a rule on a host."""

    def __init__(self, frontier: Frontier, forms: UrlForms, proofs: int = PROOFS) -> None:
        self._frontier, self._forms, self._proofs = frontier, forms, proofs
        self._hosts: dict[str, HostAliases] = {}
        self.changed: set[str] = set()
        self._undone = 0
        self.holding: set[str] = set()  # hosts that have held URLs, or had some lately
        self.undoing: set[str] = set()  # hosts with a rule whose merged URLs are queued again
        self.stand_ins: dict[str, str] = {}
        """Exact forms of merged URLs met lately, and of the URLs that stand for them."""
        self.trials = Trials(self, frontier, forms)
        self._names: dict[str, SessionNames] = {}
        self._met: dict[str, dict[bytes, str]] = {}  # URLs of a host with such a parameter

    # what is known

    def of(self, host: str) -> HostAliases:
        """What a host has proved."""
        aliases = self._hosts.get(host)
        if aliases is None:
            note = self._frontier.backend.note(NOTE.format(host=host))
            aliases = self._hosts[host] = HostAliases.unpack(note, self._proofs)
            self.trials.take_up(host, aliases)
            if aliases.held:
                self.holding.add(host)
            if aliases.undo:
                self.undoing.add(host)
        return aliases

    def recover(self, hosts: Iterable[str]) -> None:
        """Take up what was begun on these hosts."""
        for host in hosts:
            if self._frontier.backend.note(NOTE.format(host=host)) is not None:
                self.of(host)

    def forget(self, host: str) -> None:
        """Another worker has the host."""
        aliases = self._hosts.pop(host, None)
        self._names.pop(host, None)
        self._met.pop(host, None)
        for hosts in (self.changed, self.holding, self.undoing):
            hosts.discard(host)
        for trial in aliases.trials if aliases else ():
            self.trials.unregister(trial)

    def save(self) -> None:
        """Hand what has changed to the backend, for the batch that ends now."""
        backend = self._frontier.backend
        for host in self.changed:
            backend.put_note(NOTE.format(host=host), self._hosts[host].pack())
        if self.changed and self._undone:
            before = int(backend.note(UNDONE) or b"0")
            backend.put_note(UNDONE, b"%d" % (before + self._undone))
            self._undone = 0
        self.changed.clear()

    # new URLs

    def admit(self, entries: Sequence[QueuedUrl]) -> list[QueuedUrl]:
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
                aliases = self._hosts.get(entry.host)
                early = aliases.early.get(guess, entry.key) if aliases else entry.key
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
        """A URL that is queued and may have a session id."""
        met = self._met.setdefault(entry.host, {})
        if len(met) < MAX_MET and tokens_of(entry.url):
            met[entry.key] = entry.url

    def saw(self, entry: QueuedUrl, page: Page) -> None:
        """A page has come. Its links may show that a parameter of the host is a session id."""
        if not (tokens_of(entry.url) and self._forms.may_have_sessions(entry.host)):
            return
        names = self._names.setdefault(entry.host, SessionNames())
        here = [link.url for link in page.links if link.exact and host_of(link.url) == entry.host]
        if found := names.saw(entry.url, here):
            self._learn_sessions(entry.host, found)

    def _learn_sessions(self, host: str, names: Sequence[str]) -> None:
        """Compare the URLs that were met before, as far as they are queued, with the first of each
        page; such a pair is a proof as any."""
        aliases, backend = self.of(host), self._frontier.backend
        if aliases.rule(SESSION_ID).state is RuleState.OFF:
            return
        aliases.sessions += [name for name in names if name not in aliases.sessions]
        self.changed.add(host)
        for key, url in self._met.get(host, {}).items():
            bare = url_key(self._forms(without(url, aliases.sessions)).normalized)
            first = aliases.early.setdefault(bare, key)
            if first == key or key in self.trials or backend.entry(key) is None:
                continue
            self.trials.begin(host, aliases, Trial(SESSION_ID, key, first, Stage.FETCHING))

    def needed(self, host: str, one: str, other: str) -> int | None:
        """The rules by which two URLs of a host may be one page (UrlForms.needed)."""
        found, names = self._forms.needed(one, other), self.of(host).sessions
        if found is not None or not names:
            return found
        bare = [without(url, names) for url in (one, other)]
        found = self._forms.needed(*bare)
        return None if found is None else found | SESSION_ID

    def _guess_of(self, entry: QueuedUrl) -> bytes:
        """The key of the canonical form; b"" for a Request that is more than a URL."""
        if entry.payload:
            return b""
        normalized, exact = self._forms(entry.url)
        if url_key(exact) != entry.key:
            return b""
        aliases = self._hosts.get(entry.host)
        if aliases is not None and aliases.sessions:
            normalized = self._forms(without(entry.url, aliases.sessions)).normalized
        return entry.key if normalized == exact else url_key(normalized)

    def _party(self, host: str, key: bytes) -> Party | None:
        """A URL that is waiting, or stored as a 200; of one that is merged the one that stands for
        it. None for all others."""
        backend = self._frontier.backend
        merged = backend.merged(key)
        key = key if merged is None else merged.into
        if (entry := backend.entry(key)) is not None:
            return Party(key, entry.url, None)
        visit = self.first(host, key)
        return None if visit is None else Party(key, visit.url, visit.digest)

    def first(self, host: str, key: bytes) -> FetchRecord | None:
        """The record of a URL that others may be merged into."""
        visit = self._frontier.backend.visit(key)
        is_gone = visit is None or not visit.stands or key in self.of(host).gone
        return None if is_gone else visit

    def _is_merged(self, entry: QueuedUrl, parties: Sequence[Party]) -> bool:
        """Whether a URL is known, or need not be queued: then it is merged, or only counted."""
        if self._frontier.backend.check([entry.key])[0] is not UrlState.UNKNOWN:
            return False
        aliases = self.of(entry.host)
        found_on = self._forms(entry.from_page).exact if entry.link_type == REDIRECT else ""
        best: tuple[tuple[bool, int, bool], Party, int] | None = None
        for party in parties:
            needed = self.needed(entry.host, entry.url, party.url)
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
        self.changed.add(entry.host)
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
            self.holding.add(entry.host)
        self._frontier.seen.add(entry.exact)
        self.remember(entry.exact, party.url)
        return True

    def _prove(self, host: str, needed: int) -> None:
        """A redirect from one URL to the other, by one rule and others that are proven."""
        aliases = self.of(host)
        rule = aliases.open_in(needed)
        if rule.bit_count() == 1 and not needed & aliases.mask(RuleState.OFF):
            self.changed.add(host)
            aliases.prove(rule, Outcome.SAME)

    # pages

    def changing(self, host: str) -> Collection[bytes]:
        """What stands before numbers of a host that change from fetch to fetch."""
        aliases = self._hosts.get(host)
        return frozenset(aliases.changing) if aliases and aliases.changing else ()

    def settled(self, merged: MergedUrl) -> None:
        """A page that was fetched is merged now: queue it again if its pair got another verdict
        since it arrived."""
        key, aliases = merged.entry.key, self.of(merged.entry.host)
        if merged.rules & ~aliases.mask(RuleState.PROVEN) and not (
            key in self.trials or key in aliases.equal
        ):
            self.queue_again([key])
        elif merged.rules:
            self._move(merged.entry.host, key, merged.into)

    def _move(self, host: str, key: bytes, into: bytes) -> None:
        """What was merged into a URL that is merged now has another one that stands for it."""
        backend, aliases, first = self._frontier.backend, self.of(host), self.url_of(into)
        self.trials.moved(host, aliases, key, into)
        while found := backend.merged_into(key, SLICE):
            moved = []
            for one in filter(None, map(backend.merged, found)):
                if needed := self.needed(host, one.entry.url, first):
                    aliases.count(one.rules, -1)
                    aliases.count(needed, 1)
                    moved.append(MergedUrl(one.entry, needed, into))
                    self.remember(self._forms(one.entry.url).exact, first)
                else:
                    self.queue_again([one.entry.key])
            backend.merge(moved)
            self.changed.add(host)
            if aliases.held:
                self.holding.add(host)

    def url_of(self, key: bytes) -> str:
        backend = self._frontier.backend
        if (merged := backend.merged(key)) is not None:
            return merged.entry.url
        found = backend.entry(key) or backend.visit(key)
        return found.url if found is not None else ""

    # ends

    def ended(self, host: str, key: bytes, visit: FetchRecord) -> None:
        """A URL of a host is stored, failed or refused."""
        self.trials.ended(key, visit)
        if not visit.stands:
            self._queue_merged_into(host, key)
        elif (aliases := self._hosts.get(host)) is not None and key in aliases.gone:
            aliases.gone.remove(key)  # it is there again
            self.changed.add(host)

    def is_gone(self, host: str, key: bytes) -> None:
        """A URL that was a 200 is none, now that it was asked again."""
        aliases = self.of(host)
        if key not in aliases.gone:
            aliases.gone = [*aliases.gone, key][-MAX_GONE:]
            self.changed.add(host)
        self._queue_merged_into(host, key)

    def _queue_merged_into(self, host: str, key: bytes) -> None:
        if self._frontier.backend.counts(host).merged:
            while found := self._frontier.backend.merged_into(key, SLICE):
                self.queue_again(found)

    def queue_again(self, keys: Sequence[bytes]) -> None:
        """Merged URLs become queued."""
        backend = self._frontier.backend
        merged = {key: found.rules for key in keys if (found := backend.merged(key))}
        hosts: dict[str, None] = {}
        for entry in backend.unmerge(keys):
            self.of(entry.host).count(merged[entry.key], -1)
            self.of(entry.host).equal.pop(entry.key, None)
            self.stand_ins.pop(self._forms(entry.url).exact, None)
            self.changed.add(entry.host)
            self._undone += 1
            hosts[entry.host] = None
        self.reschedule(hosts)

    def reschedule(self, hosts: Iterable[str]) -> None:
        for name in hosts:
            if (host := self._frontier.hosts.get(name)) is not None:
                schedule(self._frontier, host)

    # what is left to do

    @property
    def wants_turn(self) -> bool:
        """Whether work() may have something to do once an answer is in."""
        return bool(self.holding or self.undoing)

    @property
    def has_work(self) -> bool:
        """Whether work() has something to do."""
        return bool(self.undoing) or any(map(self._is_stuck, self.holding))

    def _is_stuck(self, host: str) -> bool:
        """Whether URLs of a host are held and nothing of it is queued that may bring a verdict."""
        aliases = self.of(host)
        counts = self._frontier.backend.counts(host)
        under_way = sum(trial.rule for trial in aliases.trials)
        waiting = counts.to_fetch or counts.leased or under_way
        return bool(aliases.held) and not waiting

    def work(self) -> bool:
        """Queue some merged URLs again: those whose rule is off, and those that are held on hosts
        from which no verdict can come any more. False: there were none."""
        for host in list(self.undoing):
            aliases = self.of(host)
            if self._undo(host, aliases, aliases.undo):
                return True
            self.undoing.discard(host)
        for host in list(self.holding):
            aliases = self.of(host)
            if not aliases.held:
                self.holding.discard(host)
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
        self.changed.add(host)
        if not found:
            aliases.undo &= ~rules
            aliases.clear_count(rules)
            return False
        self.queue_again(found[:SLICE])
        return True

    def hosts_by_rule(self) -> dict[tuple[str, str], int]:
        """How many hosts, by rule and its state in a word, of those in memory."""
        found: Counter[tuple[str, str]] = Counter()
        for aliases in self._hosts.values():
            for bit, record in aliases.rules.items():
                found[next(names_of(bit)), STATE_WORDS[record.state]] += 1
        return dict(found)

    # links

    def met(self, exact: str, key: bytes) -> None:
        """A link leads to a merged URL."""
        merged = self._frontier.backend.merged(key)
        if merged is not None and (url := self.url_of(merged.into)):
            self.remember(exact, url)

    def remember(self, exact: str, url: str) -> None:
        if len(self.stand_ins) >= MAX_STAND_INS:
            self.stand_ins.clear()
            self._frontier.seen.clear()  # so that met() is called again for each
        if exact:
            self.stand_ins[exact] = self._forms(url).exact
