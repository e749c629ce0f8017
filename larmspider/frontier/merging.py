"""Merges URLs that are one page: asked for each new URL, and for what comes of those on trial.

    new = merger.admit(entries)              # of new URLs those to be queued; the others are merged
    copy = merger.arrived(key, arrival)      # a page is here: not to be stored where it is a copy
    merger.ended(host, key, visit)           # a URL has its final state

A URL whose canonical form is that of a known URL may be the same page (urls/equivalence.py). What
that host has proved decides (aliases.py): it is queued, fetched to be compared, held, or merged. A
held URL is merged, too, and queued again if the rule turns out wrong, if no verdict comes before
the end, or if the URL that stands for it fails, or gives anything but a 200.

What is known of a host's rules is kept as its note ``aliases wiki:80``, which moves with its
partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from larmspider.extraction.fingerprint import Details, RecentPages
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
    sentence,
)
from larmspider.frontier.dispatch import schedule
from larmspider.frontier.storage.records import (
    BODY_DIGEST,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    url_key,
)
from larmspider.items import REDIRECT
from larmspider.urls.equivalence import RULES, names_of
from larmspider.urls.normalizer import UrlForms

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier

NOTE = "aliases {host}"
UNDONE = "undone"
"""The note that counts how many merged URLs were queued again: an index by merged URLs is stale
when it grows."""
SLICE = 500
"""Merged URLs that are queued again at a time: 10 ms."""
MAX_STAND_INS = 65_536
"""URLs in memory whose page has another URL."""


class Party(NamedTuple):
    """A known URL that may stand for another one; ``digest`` is None until it is stored."""

    key: bytes
    url: str
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A page that was fetched. ``digest`` as in FetchRecord; ``leads_to`` is the exact form of the
    URL that it redirects to, "" for none."""

    status: int
    digest: bytes
    details: Callable[[], Details | None]
    leads_to: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """Why a page is not stored. ``merged``: its URL from now on."""

    message: str
    merged: MergedUrl


class Merger:
    """``proofs``: as many equal pairs prove a rule on a host."""

    def __init__(self, frontier: Frontier, forms: UrlForms, proofs: int = PROOFS) -> None:
        self._frontier, self._forms, self._proofs = frontier, forms, proofs
        self._hosts: dict[str, HostAliases] = {}
        self._changed: set[str] = set()
        self._trials: dict[bytes, tuple[str, Trial]] = {}  # by the key of the second URL
        self._waiting: dict[bytes, list[tuple[str, Trial]]] = {}  # by that of the first
        self._asked: dict[bytes, tuple[str, Trial]] = {}  # by that of the first, asked again
        self._undone = 0
        self._holding: set[str] = set()  # hosts that have held URLs, or had some lately
        self._undoing: set[str] = set()  # hosts with a rule whose merged URLs are queued again
        self.recent = RecentPages()
        self.stand_ins: dict[str, str] = {}
        """Exact forms of merged URLs met lately, and of the URLs that stand for them."""

    # what is known

    def of(self, host: str) -> HostAliases:
        """What a host has proved."""
        aliases = self._hosts.get(host)
        if aliases is None:
            note = self._frontier.backend.note(NOTE.format(host=host))
            aliases = self._hosts[host] = HostAliases.unpack(note, self._proofs)
            for trial in aliases.trials:
                self._register(host, trial)
            for trial in [*aliases.trials]:  # earlier versions forgot some
                waits_for = {Stage.WAITING: trial.into, Stage.FETCHING: trial.key}.get(trial.stage)
                if waits_for and self._frontier.backend.entry(waits_for) is None:
                    self._judge(host, trial, Outcome.NONE)
            if aliases.held:
                self._holding.add(host)
            if aliases.undo:
                self._undoing.add(host)
        return aliases

    def recover(self, hosts: Iterable[str]) -> None:
        """Take up what was begun on these hosts."""
        for host in hosts:
            if self._frontier.backend.note(NOTE.format(host=host)) is not None:
                self.of(host)

    def forget(self, host: str) -> None:
        """Another worker has the host."""
        aliases = self._hosts.pop(host, None)
        for hosts in (self._changed, self._holding, self._undoing):
            hosts.discard(host)
        for trial in aliases.trials if aliases else ():
            self._unregister(trial)

    def save(self) -> None:
        """Hand what has changed to the backend, for the batch that ends now."""
        backend = self._frontier.backend
        for host in self._changed:
            backend.put_note(NOTE.format(host=host), self._hosts[host].pack())
        if self._changed and self._undone:
            before = int(backend.note(UNDONE) or b"0")
            backend.put_note(UNDONE, b"%d" % (before + self._undone))
            self._undone = 0
        self._changed.clear()

    def _register(self, host: str, trial: Trial) -> None:
        self._trials[trial.key] = host, trial
        if trial.stage is Stage.WAITING:
            self._waiting.setdefault(trial.into, []).append((host, trial))
        if trial.again:
            self._asked[trial.again] = host, trial

    def _unregister(self, trial: Trial) -> None:
        self._trials.pop(trial.key, None)
        self._asked.pop(trial.again, None)
        left = [one for one in self._waiting.pop(trial.into, ()) if one[1] is not trial]
        if left:
            self._waiting[trial.into] = left

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
            wanted.append(entry)
        return wanted

    def _guess_of(self, entry: QueuedUrl) -> bytes:
        """The key of the canonical form; b"" for a Request that is more than a URL."""
        if entry.payload:
            return b""
        normalized, exact = self._forms(entry.url)
        if url_key(exact) != entry.key:
            return b""
        return entry.key if normalized == exact else url_key(normalized)

    def _party(self, host: str, key: bytes) -> Party | None:
        """A URL that is waiting, or stored as a 200; of one that is merged the one that stands for
        it. None for all others, and for what a worker of an earlier version has fetched."""
        backend = self._frontier.backend
        merged = backend.merged(key)
        key = key if merged is None else merged.into
        if (entry := backend.entry(key)) is not None:
            return Party(key, entry.url, None)
        visit = self._first(host, key)
        return Party(key, visit.url, visit.digest) if visit is not None and visit.url else None

    def _first(self, host: str, key: bytes) -> FetchRecord | None:
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
            needed = self._forms.needed(entry.url, party.url)
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
        self._changed.add(entry.host)
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
            aliases.trials.append(trial)
            self._register(entry.host, trial)
            if stage is Stage.FETCHING:
                return False
        self._frontier.backend.merge([MergedUrl(entry, needed, party.key)])
        aliases.count(needed, 1)
        if aliases.open_in(needed):
            self._holding.add(entry.host)
        self._frontier.seen.add(entry.exact)
        self._remember(entry.exact, party.url)
        return True

    def _prove(self, host: str, needed: int) -> None:
        """A redirect from one URL to the other, by one rule and others that are proven."""
        aliases = self.of(host)
        rule = aliases.open_in(needed)
        if rule.bit_count() == 1 and not needed & aliases.mask(RuleState.OFF):
            self._changed.add(host)
            aliases.prove(rule, Outcome.SAME)

    # pages

    def changing(self, host: str) -> Collection[bytes]:
        """What stands before numbers of a host that change from fetch to fetch."""
        aliases = self._hosts.get(host)
        return frozenset(aliases.changing) if aliases and aliases.changing else ()

    def expects(self, key: bytes) -> bool:
        """Whether arrived() has to see the page of a URL."""
        return key in self._trials or key in self._asked

    def is_question(self, key: bytes) -> bool:
        """Whether a queued or leased URL is one that is asked again, and no URL of its own."""
        return key in self._asked

    def arrived(self, key: bytes, arrival: Arrival) -> Copy | None:
        """A page that was fetched, before the stores have it: None if it is to be stored."""
        if key in self._asked:
            host, trial = self._asked[key]
            return self._asked_again(host, trial, key, arrival)
        if key not in self._trials:
            return None
        host, trial = self._trials[key]
        first = self._first(host, trial.into)
        if trial.stage is Stage.WAITING or first is None:
            return None
        if arrival.leads_to and arrival.leads_to == self._forms(first.url).exact:
            self._judge(host, trial, Outcome.SAME)
            return None
        if arrival.status != 200 or self.of(host).rule(trial.rule).state is RuleState.OFF:
            self._judge(host, trial, Outcome.NONE)
            return None
        if _are_equal(arrival.digest, first.digest):
            return self._copy(host, trial, first)
        trial.look, trial.second = arrival.digest, arrival.details()
        trial.first = self.recent.details(trial.into)
        if self._differs_by_changing(host, trial):
            return self._copy(host, trial, first)
        if trial.stage is Stage.FETCHING:
            trial.stage = Stage.COMPARED
            self._changed.add(host)
            self._ask_next(host)
        return self._copy(host, trial, first) if trial in self.of(host).trials else None

    def _copy(self, host: str, trial: Trial, first: FetchRecord) -> Copy:
        """The second URL is merged; while there is no verdict it is held."""
        entry = self._frontier.backend.entry(trial.key)
        assert entry is not None  # it is leased
        needed = self._forms.needed(entry.url, first.url) or trial.rule
        aliases = self.of(host)
        same = trial.stage is Stage.FETCHING
        if same:
            if aliases.rule(trial.rule).state is RuleState.OPEN:
                aliases.equal[trial.key] = trial.rule
            self._judge(host, trial, Outcome.SAME)
        else:
            self._holding.add(host)
            self._changed.add(host)
        aliases.count(needed, 1)
        self._remember(self._forms(entry.url).exact, first.url)
        message = f"same page as {first.url}, {sentence(needed, aliases)}"
        if not same:
            message = f"differs from {first.url}: fetched again unless it is a copy after all"
        return Copy(message, MergedUrl(entry, needed, trial.into))

    def settled(self, merged: MergedUrl) -> None:
        """A page that was fetched is merged now: queue it again if its pair got another verdict
        since it arrived."""
        key, aliases = merged.entry.key, self.of(merged.entry.host)
        if merged.rules & ~aliases.mask(RuleState.PROVEN) and not (
            key in self._trials or key in aliases.equal
        ):
            self._queue_again([key])
        elif merged.rules:
            self._move(merged.entry.host, key, merged.into)

    def _move(self, host: str, key: bytes, into: bytes) -> None:
        """What was merged into a URL that is merged now has another one that stands for it."""
        backend, aliases, first = self._frontier.backend, self.of(host), self._url_of(into)
        for _, trial in self._waiting.pop(key, ()):
            needed = self._forms.needed(self._url_of(trial.key), first)
            self._queue_again([trial.key])
            if needed and aliases.open_in(needed) == trial.rule:
                trial.into, trial.stage = into, Stage.FETCHING
                self._changed.add(host)
            else:
                self._judge(host, trial, Outcome.NONE)
        while found := backend.merged_into(key, SLICE):
            moved = []
            for one in filter(None, map(backend.merged, found)):
                if needed := self._forms.needed(one.entry.url, first):
                    aliases.count(one.rules, -1)
                    aliases.count(needed, 1)
                    moved.append(MergedUrl(one.entry, needed, into))
                    self._remember(self._forms(one.entry.url).exact, first)
                else:
                    self._queue_again([one.entry.key])
            backend.merge(moved)
            self._changed.add(host)
            if aliases.held:
                self._holding.add(host)

    def _differs_by_changing(self, host: str, trial: Trial) -> bool:
        """Whether a pair differs by numbers alone that change from fetch to fetch on this host."""
        if trial.first is None or trial.second is None:
            return False
        differing = trial.first.differing(trial.second)
        return differing is not None and differing <= {*self.of(host).changing}

    def _ask_next(self, host: str) -> None:
        """Ask the first URL of a pair again: of one pair at a time, for what it says about the host
        may decide the others."""
        aliases = self.of(host)
        if any(trial.stage in (Stage.ASKING, Stage.ASKING_TWICE) for trial in aliases.trials):
            return
        trial = next((one for one in aliases.trials if one.stage is Stage.COMPARED), None)
        if trial is None:
            return
        first = self._first(host, trial.into)
        if aliases.rule(trial.rule).state is RuleState.OFF or first is None:
            self._judge(host, trial, Outcome.NONE)
        elif self._differs_by_changing(host, trial):
            self._judge(host, trial, Outcome.SAME)
        else:
            self._ask(host, trial, Stage.ASKING, first)

    def _ask(self, host: str, trial: Trial, stage: Stage, first: FetchRecord) -> None:
        """Queue the first URL once more."""
        trial.stage = stage
        frontier = self._frontier
        normalized, exact = self._forms(first.url)
        entry = frontier.entry(first.url, normalized, exact=exact, depth=first.depth)
        self._asked.pop(trial.again, None)
        trial.again = entry.key = url_key(f"{exact}#asked-{stage}-{trial.key.hex()}")
        entry.host, entry.exact, entry.priority = host, "", 0
        if not frontier.backend.add([entry])[0]:
            self._judge(host, trial, Outcome.UNSURE)
            return
        self._asked[trial.again] = host, trial
        self._changed.add(host)
        self._schedule([host])

    def _asked_again(self, host: str, trial: Trial, key: bytes, arrival: Arrival) -> Copy:
        backend = self._frontier.backend
        first, entry = backend.visit(trial.into), backend.entry(key)
        assert entry is not None  # it is leased
        url = first.url if first is not None else entry.url
        self._compare_again(host, trial, arrival, first)
        return Copy(f"asked again, to compare {url} with itself", MergedUrl(entry, 0, trial.into))

    def _compare_again(
        self, host: str, trial: Trial, arrival: Arrival, first: FetchRecord | None
    ) -> None:
        """``first`` is the first fetch of the URL that was asked again."""
        if first is None or arrival.status != 200:
            self._is_gone(host, trial.into)
            self._judge(host, trial, Outcome.UNSURE)
        elif _are_equal(arrival.digest, trial.look):
            self._judge(host, trial, Outcome.SAME)
        elif _are_equal(arrival.digest, first.digest):
            self._judge(host, trial, Outcome.DIFFERENT)
        elif (now := arrival.details()) is None or trial.second is None:
            self._judge(host, trial, Outcome.UNSURE)
        else:
            self._compare_details(host, trial, now, trial.second, first)

    def _compare_details(
        self, host: str, trial: Trial, now: Details, second: Details, first: FetchRecord
    ) -> None:
        """The first URL differs from an earlier fetch, too: by what?"""
        aliases = self.of(host)
        if trial.first is not None:
            changing = trial.first.differing(now)
            if changing is None:
                self._judge(host, trial, Outcome.UNSURE)
                return
            aliases.learn_changing(changing)
        differing = now.differing(second)
        if differing is not None and differing <= {*aliases.changing}:
            self._judge(host, trial, Outcome.SAME)
        elif trial.stage is Stage.ASKING_TWICE and differing is not None:
            self._judge(host, trial, Outcome.UNSURE)  # some numbers may change more seldom
        elif trial.first is not None:
            self._judge(host, trial, Outcome.DIFFERENT)
        else:
            trial.first = now
            self._ask(host, trial, Stage.ASKING_TWICE, first)

    def _judge(self, host: str, trial: Trial, outcome: Outcome) -> None:
        first, second = (self._url_of(key) for key in (trial.into, trial.key))
        aliases = self.of(host)
        self._unregister(trial)
        is_held = self._frontier.backend.merged(trial.key) is not None
        is_open = aliases.rule(trial.rule).state is RuleState.OPEN
        if is_held and is_open and outcome is Outcome.SAME:
            aliases.equal[trial.key] = trial.rule
        aliases.judge(trial, outcome, f"{second} and {first}")
        if is_held and outcome is not Outcome.SAME:
            self._queue_again([trial.key])
        if aliases.undo:
            self._undoing.add(host)
        self._changed.add(host)
        self._promote(host, trial.rule)
        self._ask_next(host)

    def _url_of(self, key: bytes) -> str:
        backend = self._frontier.backend
        if (merged := backend.merged(key)) is not None:
            return merged.entry.url
        found = backend.entry(key) or backend.visit(key)
        return found.url if found is not None else ""

    def _promote(self, host: str, rule: int) -> None:
        """Let a URL that is held go on trial where a trial gave no verdict."""
        backend, aliases = self._frontier.backend, self.of(host)
        if not aliases.wants_trial(rule) or not aliases.rule(rule).merged:
            return
        for key in backend.merged_of(host, SLICE):
            merged = backend.merged(key)
            if merged is None or key in self._trials or key in aliases.equal:
                continue
            if aliases.open_in(merged.rules) != rule:
                continue
            if self._first(host, merged.into) is None:
                continue
            trial = Trial(rule, key, merged.into, Stage.FETCHING)
            aliases.trials.append(trial)
            self._register(host, trial)
            self._queue_again([key])
            if not aliases.wants_trial(rule):
                return

    # ends

    def ended(self, host: str, key: bytes, visit: FetchRecord) -> None:
        """A URL of a host is stored, failed or refused."""
        for name, trial in self._waiting.pop(key, ()):
            self._queue_again([trial.key])
            if visit.stands:
                trial.stage = Stage.FETCHING
                self._changed.add(name)
            else:
                self._judge(name, trial, Outcome.NONE)
        if key in self._asked:
            name, trial = self._asked[key]
            self._is_gone(name, trial.into)
            self._judge(name, trial, Outcome.UNSURE)
        elif key in self._trials and self._trials[key][1].stage is Stage.FETCHING:
            name, trial = self._trials[key]
            self._judge(name, trial, Outcome.NONE)
        if not visit.stands:
            self._queue_merged_into(host, key)
        elif (aliases := self._hosts.get(host)) is not None and key in aliases.gone:
            aliases.gone.remove(key)  # it is there again
            self._changed.add(host)

    def _is_gone(self, host: str, key: bytes) -> None:
        """A URL that was a 200 is none, now that it was asked again."""
        aliases = self.of(host)
        if key not in aliases.gone:
            aliases.gone = [*aliases.gone, key][-MAX_GONE:]
            self._changed.add(host)
        self._queue_merged_into(host, key)

    def _queue_merged_into(self, host: str, key: bytes) -> None:
        if self._frontier.backend.counts(host).merged:
            while found := self._frontier.backend.merged_into(key, SLICE):
                self._queue_again(found)

    def _queue_again(self, keys: Sequence[bytes]) -> None:
        """Merged URLs become queued."""
        backend = self._frontier.backend
        merged = {key: found.rules for key in keys if (found := backend.merged(key))}
        hosts: dict[str, None] = {}
        for entry in backend.unmerge(keys):
            self.of(entry.host).count(merged[entry.key], -1)
            self.of(entry.host).equal.pop(entry.key, None)
            self.stand_ins.pop(self._forms(entry.url).exact, None)
            self._changed.add(entry.host)
            self._undone += 1
            hosts[entry.host] = None
        self._schedule(hosts)

    def _schedule(self, hosts: Iterable[str]) -> None:
        for name in hosts:
            if (host := self._frontier.hosts.get(name)) is not None:
                schedule(self._frontier, host)

    # what is left to do

    @property
    def wants_turn(self) -> bool:
        """Whether work() may have something to do once an answer is in."""
        return bool(self._holding or self._undoing)

    @property
    def has_work(self) -> bool:
        """Whether work() has something to do."""
        return bool(self._undoing) or any(map(self._is_stuck, self._holding))

    def _is_stuck(self, host: str) -> bool:
        """Whether URLs of a host are held and nothing of it is queued that may bring a verdict."""
        aliases = self.of(host)
        counts = self._frontier.backend.counts(host)
        under_way = sum(trial.rule for trial in aliases.trials)
        return bool(aliases.held) and not (counts.queued or counts.leased or under_way)

    def work(self) -> bool:
        """Queue some merged URLs again: those whose rule is off, and those that are held on hosts
        from which no verdict can come any more. False: there were none."""
        for host in list(self._undoing):
            aliases = self.of(host)
            if self._undo(host, aliases, aliases.undo):
                return True
            self._undoing.discard(host)
        for host in list(self._holding):
            aliases = self.of(host)
            if not aliases.held:
                self._holding.discard(host)
            elif self._is_stuck(host):
                for rule in RULES.values():
                    if aliases.held & rule:
                        self._promote(host, rule)
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
        self._changed.add(host)
        if not found:
            aliases.undo &= ~rules
            aliases.clear_count(rules)
            return False
        self._queue_again(found[:SLICE])
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
        if merged is not None and (url := self._url_of(merged.into)):
            self._remember(exact, url)

    def _remember(self, exact: str, url: str) -> None:
        if len(self.stand_ins) >= MAX_STAND_INS:
            self.stand_ins.clear()
            self._frontier.seen.clear()  # so that met() is called again for each
        if exact:
            self.stand_ins[exact] = self._forms(url).exact


def _are_equal(one: bytes, other: bytes) -> bool:
    """Whether two FetchRecord.digest are of one page: by its bytes, or by fingerprint."""
    if one and one[:BODY_DIGEST] == other[:BODY_DIGEST]:
        return True
    return bool(one[BODY_DIGEST:]) and one[BODY_DIGEST:] == other[BODY_DIGEST:]
