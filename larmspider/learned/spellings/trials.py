"""Trials: pairs of URLs that may be one page, from the decision to compare them to the verdict.

    trials.begin(host, aliases, trial)            # the second one is queued, or waits for the first
    trials.recent.put(key, page)
    copy = trials.arrived(host, key, arrival)     # a page is here: not to be stored if it is a copy
    trials.ended(host, key, visit)                # a URL has its final state

Two equal pages are a verdict at once. If they differ, the first URL is fetched again, because pages
may differ from fetch to fetch: one pair of a host at a time. If few words differ, the first URL is
fetched twice, then the second and the first one in turns, MOST_LOOKS times in all. aliases.py
decides what a verdict means for the rule, merging.py what it means for other URLs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from larmspider.extraction.texts.fingerprint import Details, RecentPages
from larmspider.frontier.storage.records import BODY_DIGEST, FetchRecord, MergedUrl, url_key
from larmspider.learned.spellings.aliases import (
    HostAliases,
    Outcome,
    RuleState,
    Stage,
    Trial,
    sentence,
)

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier
    from larmspider.learned.spellings.known import Spellings
    from larmspider.urls.normalizer import UrlForms

MOST_LOOKS = 5
"""Repeated fetches of a pair's URLs: alternating words may be equal by chance."""
_LOOKED_THROUGH = 500
"""Merged URLs that are searched for one that may go on trial."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A page that was fetched. ``digest``: as in FetchRecord. ``leads_to``: the exact form of the
    URL to which it redirects, "" for none."""

    status: int
    digest: bytes
    details: Callable[[], Details | None]
    leads_to: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """Why a page is not stored. ``merged``: its URL from now on."""

    message: str
    merged: MergedUrl


class Trials:
    """The trials of all hosts; ``known`` has them."""

    def __init__(self, known: Spellings, frontier: Frontier, forms: UrlForms) -> None:
        self._known, self._frontier, self._forms = known, frontier, forms
        self.recent = RecentPages()

    def begin(self, host: str, aliases: HostAliases, trial: Trial) -> None:
        aliases.trials.append(trial)
        self._known.hosts.touch(host)

    # which there are

    def _second(self, key: bytes, host: str) -> Trial | None:
        """The trial whose second URL has this key."""
        return next((one for one in self._known.hosts.of(host).trials if one.key == key), None)

    def _asked(self, key: bytes, host: str) -> Trial | None:
        """The trial for which the URL with this key was queued once more."""
        return next((one for one in self._known.hosts.of(host).trials if one.again == key), None)

    def _waiting(self, key: bytes, host: str) -> list[Trial]:
        """The trials that wait for the first URL, which has this key."""
        return [one for one in self._known.hosts.of(host).trials if one.waits_for(key)]

    def is_second(self, key: bytes, host: str) -> bool:
        """Whether a URL is the second one of a pair."""
        return self._second(key, host) is not None

    def expects(self, key: bytes, host: str) -> bool:
        """Whether the page of this URL has to be passed to arrived()."""
        return any(key in (one.key, one.again) for one in self._known.hosts.of(host).trials)

    def is_party(self, key: bytes, host: str) -> bool:
        """Whether a verdict needs the page of a URL."""
        return self.expects(key, host) or bool(self._waiting(key, host))

    def is_question(self, key: bytes, host: str) -> bool:
        """Whether a queued or leased URL is only fetched again for a comparison."""
        return self._asked(key, host) is not None

    # what becomes of them

    def arrived(self, host: str, key: bytes, arrival: Arrival) -> Copy | None:
        """Judge a fetched page before the stores get it: None if it is to be stored."""
        if (trial := self._asked(key, host)) is not None:
            return self._asked_again(host, trial, key, arrival)
        if (trial := self._second(key, host)) is None:
            return None
        first = self._known.first(host, trial.into)
        if first is None and trial.stage is Stage.FETCHING and arrival.status == 200:
            return self._held(host, trial)
        if trial.stage is Stage.WAITING or first is None:
            return None
        if arrival.leads_to and arrival.leads_to == self._forms(first.url).exact:
            self.judge(host, trial, Outcome.SAME)
            return None
        if (
            arrival.status != 200
            or self._known.hosts.of(host).rule(trial.rule).state is RuleState.OFF
        ):
            self.judge(host, trial, Outcome.NONE)
            return None
        if _are_equal(arrival.digest, first.digest):
            return self._copy(host, trial, first)
        trial.look, trial.second = arrival.digest, arrival.details()
        trial.first = self.recent.details(trial.into)
        if self._differs_by_changing(host, trial):
            return self._copy(host, trial, first)
        if trial.stage is Stage.FETCHING:
            trial.stage = Stage.COMPARED
            self._known.hosts.touch(host)
            self._ask_next(host)
        return (
            self._copy(host, trial, first) if trial in self._known.hosts.of(host).trials else None
        )

    def _held(self, host: str, trial: Trial) -> Copy | None:
        """The second URL was fetched before the first one, which is still queued. The second URL is
        fetched once more after the first one, for the comparison."""
        backend = self._frontier.backend
        entry, first = backend.entry(trial.key), backend.entry(trial.into)
        if entry is None or first is None:
            return None
        aliases = self._known.hosts.of(host)
        needed = self._known.needed(host, entry.url, first.url) or trial.rule
        trial.stage = Stage.WAITING
        self._known.holding.add(host)
        self._known.hosts.touch(host)
        aliases.count(needed, 1)
        return Copy(f"waits for {first.url}", MergedUrl(entry, needed, trial.into))

    def _copy(self, host: str, trial: Trial, first: FetchRecord) -> Copy:
        """The second URL is merged; while there is no verdict it is held."""
        entry = self._frontier.backend.entry(trial.key)
        assert entry is not None  # it is leased
        needed = self._known.needed(host, entry.url, first.url) or trial.rule
        aliases = self._known.hosts.of(host)
        same = trial.stage is Stage.FETCHING
        if same:
            if aliases.rule(trial.rule).state is RuleState.OPEN:
                aliases.equal[trial.key] = trial.rule
            self.judge(host, trial, Outcome.SAME)
        else:
            self._known.holding.add(host)
            self._known.hosts.touch(host)
        aliases.count(needed, 1)
        self._known.remember(self._forms(entry.url).exact, first.url)
        message = f"same page as {first.url}, {sentence(needed, aliases)}"
        if not same:
            message = f"differs from {first.url}: fetched again unless it is a copy after all"
        return Copy(message, MergedUrl(entry, needed, trial.into))

    def ended(self, host: str, key: bytes, visit: FetchRecord) -> None:
        """A URL is stored, failed or refused."""
        for trial in self._waiting(key, host):
            trial.stage = Stage.FETCHING
            self._known.hosts.touch(host)
            self._known.queue_again([trial.key])
            if not visit.stands:
                self.judge(host, trial, Outcome.NONE)
        if (asked := self._asked(key, host)) is not None:
            if self._known.url_of(key) != self._known.url_of(asked.key):
                self._known.note_gone(host, asked.into)
            self.judge(host, asked, Outcome.UNSURE)
        elif (second := self._second(key, host)) is not None and second.stage is Stage.FETCHING:
            self.judge(host, second, Outcome.NONE)

    def moved(self, host: str, aliases: HostAliases, key: bytes, into: bytes) -> None:
        """A URL that others are compared with is merged itself: they are now compared with its
        stand-in."""
        first = self._known.url_of(into)
        for trial in self._waiting(key, host):
            needed = self._known.needed(host, self._known.url_of(trial.key), first)
            self._known.queue_again([trial.key])
            if needed and aliases.open_in(needed) == trial.rule:
                trial.into, trial.stage = into, Stage.FETCHING
                self._known.hosts.touch(host)
            else:
                self.judge(host, trial, Outcome.NONE)

    # the first URL again

    def _differs_by_changing(self, host: str, trial: Trial) -> bool:
        """Whether a pair differs only in text that changes with each fetch on this host: numbers,
        or words in known places."""
        changing = {*self._known.hosts.of(host).changing}
        if trial.first is not None and trial.second is not None:
            differing = trial.first.differing(trial.second)
            if differing is not None and differing <= changing:
                return True
        return self._differs_in_places(trial.into, trial.key, changing)

    def _differs_in_places(self, first: bytes, second: bytes, changing: set[bytes]) -> bool:
        """Whether two pages differ in these places alone, if they are remembered."""
        places = self.recent.differing(first, second)
        return places is not None and places <= changing

    def _ask_next(self, host: str) -> None:
        """Fetch the first URL of a pair again. Only one pair at a time, because its result for the
        host may decide the others."""
        aliases = self._known.hosts.of(host)
        if any(trial.stage in (Stage.ASKING, Stage.ASKING_TWICE) for trial in aliases.trials):
            return
        trial = next((one for one in aliases.trials if one.stage is Stage.COMPARED), None)
        if trial is None:
            return
        first = self._known.first(host, trial.into)
        if aliases.rule(trial.rule).state is RuleState.OFF or first is None:
            self.judge(host, trial, Outcome.NONE)
        elif self._differs_by_changing(host, trial):
            self.judge(host, trial, Outcome.SAME)
        else:
            self._ask(host, trial, Stage.ASKING, first)

    def _ask(
        self, host: str, trial: Trial, stage: Stage, first: FetchRecord, *, second: bool = False
    ) -> None:
        """Queue the first URL once more, or the ``second`` one."""
        trial.stage, trial.looks = stage, trial.looks + 1
        frontier = self._frontier
        url = self._known.url_of(trial.key) if second else first.url
        normalized, exact = self._forms(url)
        entry = frontier.entry(url, normalized, exact=exact, depth=first.depth)
        again = "" if trial.looks < 3 else f"-{trial.looks}"
        trial.again = entry.key = url_key(f"{exact}#asked-{stage}-{trial.key.hex()}{again}")
        entry.host, entry.exact, entry.priority = host, "", 0
        if not frontier.backend.add([entry])[0]:
            self.judge(host, trial, Outcome.UNSURE)
            return
        self._known.hosts.touch(host)
        self._known.reschedule([host])

    def _asked_again(self, host: str, trial: Trial, key: bytes, arrival: Arrival) -> Copy:
        backend = self._frontier.backend
        first, entry = backend.visit(trial.into), backend.entry(key)
        assert entry is not None  # it is leased
        if first is not None and entry.url == self._known.url_of(trial.key):
            self._compare_second(host, trial, arrival, first, key)
        else:
            self._compare_again(host, trial, arrival, first, key)
        told = f"fetched again, to compare {entry.url} with itself"
        return Copy(told, MergedUrl(entry, 0, trial.into))

    def _compare_second(
        self, host: str, trial: Trial, arrival: Arrival, first: FetchRecord, key: bytes
    ) -> None:
        """The second URL was fetched again: it may now equal a fetch of the first URL."""
        if arrival.status != 200:
            self.judge(host, trial, Outcome.UNSURE)
        elif _are_equal(arrival.digest, first.digest) or self._differs_in_places(
            trial.into, key, set()
        ):
            self.judge(host, trial, Outcome.SAME)
        elif _are_equal(arrival.digest, trial.look):
            self._compare_places(host, trial, key, first, Outcome.DIFFERENT, of=trial.key)
        else:
            self._compare_places(host, trial, key, first, Outcome.UNSURE, of=trial.key)

    def _compare_again(
        self, host: str, trial: Trial, arrival: Arrival, first: FetchRecord | None, key: bytes
    ) -> None:
        """``first``: the earlier fetch of the URL that was fetched again. ``key``: the key of the
        present answer."""
        self.recent.stand_in(trial.into, key)  # after a restart no text of it is known
        if first is None or arrival.status != 200:
            self._known.note_gone(host, trial.into)
            self.judge(host, trial, Outcome.UNSURE)
        elif _are_equal(arrival.digest, trial.look):
            self.judge(host, trial, Outcome.SAME)
        elif _are_equal(arrival.digest, first.digest):
            self._compare_places(host, trial, key, first, Outcome.DIFFERENT)
        elif (now := arrival.details()) is None or trial.second is None:
            self.judge(host, trial, Outcome.UNSURE)
        else:
            self._compare_details(host, trial, now, trial.second, first, key)

    def _compare_places(
        self,
        host: str,
        trial: Trial,
        key: bytes,
        first: FetchRecord,
        outcome: Outcome,
        *,
        of: bytes = b"",
    ) -> None:
        """The ``outcome``, unless alternating words are the only difference. ``key``: the key of a
        repeated fetch of the URL ``of``, which is by default the first URL."""
        if self._learn_places(host, trial, key, of or trial.into):
            self.judge(host, trial, Outcome.SAME)
        elif self._may_alternate(trial):
            second = trial.looks % 2 == 0  # not in turns: words may alternate with each request
            self._ask(host, trial, Stage.ASKING_TWICE, first, second=second)
        else:
            self.judge(host, trial, outcome)

    def _learn_places(self, host: str, trial: Trial, key: bytes, of: bytes) -> bool:
        """Note the places in which a URL changes with each fetch. True: the other URL differs from
        it only in these places."""
        aliases = self._known.hosts.of(host)
        if changing := self.recent.differing(of, key):
            aliases.learn_changing(changing)
            self._known.hosts.touch(host)
        places, other = {*aliases.changing}, trial.key if of == trial.into else trial.into
        return any(self._differs_in_places(one, other, places) for one in (of, key))

    def _may_alternate(self, trial: Trial) -> bool:
        """Whether the pair differs in a few words, which may come and go, so that it is compared
        again."""
        is_near = self.recent.differing(trial.into, trial.key) is not None
        details = trial.first and trial.second and trial.first.differing(trial.second)
        return is_near and details is None and trial.looks < MOST_LOOKS

    def _compare_details(
        self,
        host: str,
        trial: Trial,
        now: Details,
        second: Details,
        first: FetchRecord,
        key: bytes,
    ) -> None:
        """The first URL differs from an earlier fetch, too: find the difference."""
        aliases = self._known.hosts.of(host)
        if trial.first is not None:
            changing = trial.first.differing(now)
            if changing is None:
                self._compare_places(host, trial, key, first, Outcome.UNSURE)
                return
            aliases.learn_changing(changing)
        differing = now.differing(second)
        if differing is not None and differing <= {*aliases.changing}:
            self.judge(host, trial, Outcome.SAME)
        elif trial.stage is Stage.ASKING_TWICE and differing is not None:
            self.judge(host, trial, Outcome.UNSURE)  # some numbers may change more seldom
        elif trial.first is not None:
            self._compare_places(host, trial, key, first, Outcome.DIFFERENT)
        else:
            trial.first = now
            self._ask(host, trial, Stage.ASKING_TWICE, first)

    # verdicts

    def judge(self, host: str, trial: Trial, outcome: Outcome) -> None:
        first, second = (self._known.url_of(key) for key in (trial.into, trial.key))
        aliases = self._known.hosts.of(host)
        is_held = self._frontier.backend.merged(trial.key) is not None
        is_open = aliases.rule(trial.rule).state is RuleState.OPEN
        if is_held and is_open and outcome is Outcome.SAME:
            aliases.equal[trial.key] = trial.rule
        aliases.judge(trial, outcome, f"{second} and {first}")
        if is_held and outcome is not Outcome.SAME:
            self._known.queue_again([trial.key])
        if aliases.undo:
            self._known.undoing.add(host)
        self._known.hosts.touch(host)
        self.promote(host, trial.rule)
        self._ask_next(host)

    def promote(self, host: str, rule: int) -> None:
        """Let a URL that is held go on trial where a trial gave no verdict."""
        backend, aliases = self._frontier.backend, self._known.hosts.of(host)
        if not aliases.wants_trial(rule) or not aliases.rule(rule).merged:
            return
        for key in backend.merged_of(host, _LOOKED_THROUGH):
            merged = backend.merged(key)
            if merged is None or self.is_second(key, host) or key in aliases.equal:
                continue
            if aliases.open_in(merged.rules) != rule:
                continue
            if self._known.first(host, merged.into) is None:
                continue
            trial = Trial(rule, key, merged.into, Stage.FETCHING)
            self.begin(host, aliases, trial)
            self._known.queue_again([key])
            if not aliases.wants_trial(rule):
                return


def _are_equal(one: bytes, other: bytes) -> bool:
    """Whether two FetchRecord.digest belong to one page: by its bytes, or by fingerprint."""
    if one and one[:BODY_DIGEST] == other[:BODY_DIGEST]:
        return True
    return bool(one[BODY_DIGEST:]) and one[BODY_DIGEST:] == other[BODY_DIGEST:]
