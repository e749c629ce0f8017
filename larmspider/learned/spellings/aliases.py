"""Equal spellings of URLs that a host has proved: are /FAQ.html and /faq.html one page?

    aliases = HostAliases(proofs=3)
    aliases.decide(PATH_CASE, sample=False)       # TRY: fetch it and compare
    aliases.judge(trial, Outcome.SAME)            # three times, and the rule is proven here
    aliases.decide(PATH_CASE, sample=False)       # MERGE: it need not be fetched

A rule of urls/equivalence.py is, on each host, in one of these states:

=========  ==================================================================================
open       the first pairs are fetched and compared; meanwhile further URLs are held
proven     enough pairs were equal: further URLs are merged, one in SAMPLE is fetched
off        a pair differed, or no verdict was possible: every URL is fetched
=========  ==================================================================================

    open -> proven -> off;  open -> off

A pair that needs two rules tries neither, unless only one of them is unproven. Nothing here does
I/O: the Merger (merging.py) calls it, and acts.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, IntEnum

import msgspec

from larmspider.extraction.texts.fingerprint import Details
from larmspider.frontier.part import Note
from larmspider.urls.equivalence import RULES, names_of

PROOFS = 3
"""LARM_CANONICAL_PROOFS: equal pairs that prove a rule on a host."""
SAMPLE = 100
"""A proven rule merges URLs without a fetch; one in 100 is fetched as a check."""
MAX_SAMPLES = 3
"""Checks of a host at a time."""
MAX_MERGED = 10_000
"""Merged URLs of a rule and host that are kept; the others are counted."""
MAX_GONE = 1_000
"""URLs of a host that are known to be no longer a 200; the latest ones."""
MAX_CONTEXTS = 64
"""Kinds of numbers of a host that are known to change from fetch to fetch."""


class RuleState(IntEnum):
    """The numbers are on disk."""

    OPEN = 0
    PROVEN = 1
    OFF = 2


STATE_WORDS = {RuleState.OPEN: "trial", RuleState.PROVEN: "proven", RuleState.OFF: "off"}
"""Names of the states in stats keys."""


class Decision(Enum):
    """The treatment of a URL that rules make equal to a known URL."""

    FETCH = "fetch"
    TRY = "try"
    HOLD = "hold"
    MERGE = "merge"


class Outcome(Enum):
    """The result of a comparison. NONE: there was nothing to compare (not two 200s). UNSURE: the
    first URL differs from itself."""

    SAME = "same"
    DIFFERENT = "different"
    UNSURE = "unsure"
    NONE = "none"


class Stage(IntEnum):
    """The progress of a trial. The numbers are stored on disk."""

    WAITING = 0
    """The first URL is queued. The second one is held until the first is fetched."""
    FETCHING = 1
    """The second URL is queued."""
    ASKING = 2
    """The two pages differ. The first URL is fetched again."""
    ASKING_TWICE = 3
    """The first URL differed from its own first fetch. A third fetch shows what varies."""
    COMPARED = 4
    """The two pages differ, and wait for another pair of the host that is in ASKING."""


class Trial(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. A pair of URLs that is compared: ``key`` of the
    second one, ``into`` of the first, for ``rule``. ``look`` (a digest) and ``second`` (details)
    belong to the second URL. ``again``: the key of the first URL's repeated fetch. ``first``: the
    details of the first URL's first fetch or, if these are not known, of its first repeated
    fetch."""

    rule: int
    key: bytes
    into: bytes
    stage: Stage
    look: bytes = b""
    second: Details | None = None
    again: bytes = b""
    first: Details | None = None
    looks: int = 0
    """Repeated fetches of the first URL in this run, because words differ."""

    def waits_for(self, key: bytes) -> bool:
        """Whether the second URL is held until the first one, with this key, has been fetched."""
        return self.stage is Stage.WAITING and self.into == key


class RuleRecord(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. ``same``: the number of equal pairs. ``unsure``:
    the number of pairs without a verdict. ``merged``: URLs that the rule has merged or holds.
    ``beyond``: merged URLs that are only counted. ``why``: why the rule is off."""

    state: RuleState = RuleState.OPEN
    same: int = 0
    unsure: int = 0
    merged: int = 0
    beyond: int = 0
    why: str = ""


class HostAliases(Note):
    """The rules of one host. ``proofs``: the number of equal pairs that prove a rule. ``undo`` are
    rules whose merged URLs are being queued again."""

    proofs: int = PROOFS
    rules: dict[int, RuleRecord] = {}
    trials: list[Trial] = []
    undo: int = 0
    changing: list[bytes] = []
    """Hashes of the words before numbers that differ between two fetches of one page, and
    around words that differ."""
    equal: dict[bytes, int] = {}
    """Merged URLs that were compared, by key, with their rule while it is on trial: a pair is
    one proof, however often it might be fetched."""
    gone: list[bytes] = []
    """Stored URLs that gave no 200 at a repeated fetch: no other URL is merged into them."""
    sessions: list[str] = []
    """Names of parameters that are session ids on this host, as its pages have shown
    (sessions.py)."""
    early: dict[bytes, bytes] = {}
    """The keys of URLs that were met before, by the key of the URL without these parameters."""

    def __repr__(self) -> str:
        return f"<HostAliases {', '.join(self.in_words()) or 'nothing met'}>"

    def rule(self, bit: int) -> RuleRecord:
        return self.rules.setdefault(bit, RuleRecord())

    def mask(self, state: RuleState) -> int:
        """The rules in a state, among the rules that URLs of the host needed."""
        return sum(bit for bit, record in self.rules.items() if record.state is state)

    @property
    def held(self) -> int:
        """The rules on trial by which URLs are held."""
        return sum(
            bit
            for bit, record in self.rules.items()
            if record.state is RuleState.OPEN and record.merged > self.equal_by(bit)
        )

    def is_held(self, key: bytes, rules: int) -> bool:
        """Whether a URL that is merged by some rules was not compared, and may still be queued."""
        return bool(self.open_in(rules)) and key not in self.equal

    def equal_by(self, rule: int) -> int:
        """The number of merged URLs that were compared for a rule on trial."""
        return sum(one == rule for one in self.equal.values())

    def open_in(self, needed: int) -> int:
        """The rules among ``needed`` that are neither proven nor off."""
        return needed & ~self.mask(RuleState.PROVEN) & ~self.mask(RuleState.OFF)

    def decide(self, needed: int, *, sample: bool) -> Decision:
        """The treatment of a URL that ``needed`` rules make equal to a URL that may stand for it.
        ``sample``: it is one in SAMPLE."""
        unproven = self.open_in(needed)
        if not needed or needed & self.mask(RuleState.OFF) or unproven.bit_count() > 1:
            return Decision.FETCH
        if not unproven:
            looked_at = sum(
                self.rule(trial.rule).state is RuleState.PROVEN for trial in self.trials
            )
            return Decision.TRY if sample and looked_at < MAX_SAMPLES else Decision.MERGE
        return Decision.TRY if self.wants_trial(unproven) else Decision.HOLD

    def wants_trial(self, rule: int) -> bool:
        """Whether a rule needs another pair in addition to the pairs that are compared now."""
        record = self.rule(rule)
        under_way = sum(trial.rule == rule for trial in self.trials)
        return record.state is RuleState.OPEN and under_way + record.same < self.proofs

    def judge(self, trial: Trial, outcome: Outcome, why: str = "") -> RuleState:
        """End a trial. Returns the new state of its rule. ``why``: the pair, for people."""
        self.trials.remove(trial)
        return self.prove(trial.rule, outcome, why)

    def prove(self, rule: int, outcome: Outcome, why: str = "") -> RuleState:
        """Record a proof by a redirect, which needs no trial."""
        record = self.rule(rule)
        if record.state is RuleState.OFF:
            return record.state
        if outcome is Outcome.SAME:
            record.same += 1
            if record.state is RuleState.OPEN and record.same >= self.proofs:
                record.state = RuleState.PROVEN
        elif outcome is Outcome.DIFFERENT:
            record.state, record.why = RuleState.OFF, why
        elif outcome is Outcome.UNSURE:
            record.unsure += 1
            if record.state is RuleState.OPEN and record.unsure >= self.proofs:
                record.state = RuleState.OFF
                record.why = f"no verdict: its pages differ from fetch to fetch, as {why}"
        if record.state is RuleState.OFF:
            self.undo |= rule
        if record.state is not RuleState.OPEN:
            self.equal = {key: one for key, one in self.equal.items() if one != rule}
        return record.state

    def count(self, rules: int, change: int) -> None:
        """Merged URLs that came or went."""
        for bit in RULES.values():
            if rules & bit:
                self.rule(bit).merged += change

    def count_beyond(self, rules: int) -> None:
        """One more URL that is merged and not kept."""
        for bit in RULES.values():
            if rules & bit:
                self.rule(bit).beyond += 1

    def clear_count(self, rules: int) -> None:
        """Reset the counts of these rules: none of their merged URLs is left, except compared
        URLs."""
        for bit in RULES.values():
            if rules & bit and bit in self.rules:
                self.rules[bit].merged = self.equal_by(bit)

    def is_full(self, rules: int) -> bool:
        """Whether one of the rules has MAX_MERGED merged URLs."""
        return any(
            rules & bit and record.merged >= MAX_MERGED for bit, record in self.rules.items()
        )

    def learn_changing(self, contexts: set[bytes]) -> None:
        new = [one for one in sorted(contexts) if one not in self.changing]
        self.changing += new[: MAX_CONTEXTS - len(self.changing)]

    def in_words(self) -> Iterator[str]:
        """``path-case proven 3 times``, for each rule that was used."""
        for bit, record in sorted(self.rules.items()):
            (name,) = names_of(bit)
            if record.state is RuleState.PROVEN:
                yield f"{name} proven {record.same} times"
            elif record.state is RuleState.OFF:
                yield f"{name} off: {record.why}"
            else:
                yield f"{name} on trial, {record.same} of {self.proofs}"

    def begin_run(self) -> None:
        for trial in self.trials:
            trial.looks = 0


def sentence(rules: int, aliases: HostAliases) -> str:
    """``by the folder-file rule, proven 3 times here``.

    >>> sentence(FOLDER_FILE, aliases)
    'by the folder-file rule, proven 3 times here'
    """
    names = list(names_of(rules))
    what = f"by the {' and '.join(names)} rule{'s' if len(names) > 1 else ''}"
    records = [aliases.rules[bit] for bit in RULES.values() if rules & bit and bit in aliases.rules]
    if not records or any(record.state is RuleState.OFF for record in records):
        return what
    times = min(record.same for record in records)
    proven = all(record.state is RuleState.PROVEN for record in records)
    if not proven:
        return f"{what}, on trial here"
    return f"{what}, proven {times} time{'' if times == 1 else 's'} here"
