"""What a host proves about spellings of its URLs, as tables."""

from __future__ import annotations

import pytest

from larmspider.extraction.texts.fingerprint import Details
from larmspider.learned.spellings.aliases import (
    MAX_SAMPLES,
    Decision,
    HostAliases,
    Outcome,
    RuleState,
    Stage,
    Trial,
    sentence,
)
from larmspider.urls.equivalence import DOUBLE_SLASH, FOLDER_FILE, PATH_CASE, SESSION_ID

SAME, DIFFERENT, UNSURE, NONE = Outcome
OPEN, PROVEN, OFF = RuleState


def aliases(**states: RuleState) -> HostAliases:
    made = HostAliases()
    for name, state in states.items():
        rule = {"case": PATH_CASE, "folder": FOLDER_FILE, "slash": DOUBLE_SLASH}[name]
        made.rule(rule).state = state
    return made


def trial(host: HostAliases, rule: int = PATH_CASE, key: bytes = b"k") -> Trial:
    host.trials.append(Trial(rule, key, b"into", Stage.FETCHING))
    return host.trials[-1]


@pytest.mark.parametrize(
    "host, needed, expected",
    [
        (aliases(), PATH_CASE, Decision.TRY),
        (aliases(case=PROVEN), PATH_CASE, Decision.MERGE),
        (aliases(case=OFF), PATH_CASE, Decision.FETCH),
        (aliases(), PATH_CASE | FOLDER_FILE, Decision.FETCH),
        (aliases(folder=PROVEN), PATH_CASE | FOLDER_FILE, Decision.TRY),
        (aliases(case=PROVEN, folder=PROVEN), PATH_CASE | FOLDER_FILE, Decision.MERGE),
        (aliases(case=PROVEN, folder=OFF), PATH_CASE | FOLDER_FILE, Decision.FETCH),
        (aliases(case=OFF), SESSION_ID, Decision.TRY),
        (aliases(), 0, Decision.FETCH),
    ],
)
def test_what_happens_to_a_url(host: HostAliases, needed: int, expected: Decision) -> None:
    """A pair tries one rule, the others being proven."""
    assert host.decide(needed, sample=False) is expected


@pytest.mark.parametrize(
    "outcomes, state",
    [
        ([SAME, SAME], OPEN),
        ([SAME, SAME, SAME], PROVEN),
        ([NONE, NONE, NONE, NONE], OPEN),
        ([SAME, SAME, NONE, SAME], PROVEN),
        ([SAME, DIFFERENT], OFF),
        ([SAME, SAME, SAME, DIFFERENT], OFF),
        ([DIFFERENT, SAME, SAME, SAME], OFF),
        ([UNSURE, UNSURE, SAME, SAME, SAME], PROVEN),
        ([UNSURE, UNSURE, UNSURE], OFF),
        ([SAME, SAME, SAME, UNSURE, UNSURE, UNSURE], PROVEN),
    ],
)
def test_outcomes_make_a_state(outcomes: list[Outcome], state: RuleState) -> None:
    """Three equal pairs prove a rule; one that differs turns it off, and undoes what it merged."""
    host = aliases()
    for outcome in outcomes:
        host.judge(trial(host), outcome, "a and b")
    assert host.rule(PATH_CASE).state is state
    assert host.undo == (PATH_CASE if state is OFF else 0)
    assert host.trials == []


def test_further_urls_are_held_while_three_are_compared() -> None:
    """Fewer where some were equal already."""
    host = aliases()
    for _ in range(3):
        assert host.decide(PATH_CASE, sample=False) is Decision.TRY
        trial(host)
    assert host.decide(PATH_CASE, sample=False) is Decision.HOLD
    host.judge(host.trials[0], SAME)
    assert host.decide(PATH_CASE, sample=False) is Decision.HOLD
    host.judge(host.trials[0], NONE)
    assert host.decide(PATH_CASE, sample=False) is Decision.TRY


def test_samples_of_a_proven_rule_are_few_at_a_time() -> None:
    """Beyond these they are merged like others."""
    host = aliases(case=PROVEN)
    for _ in range(MAX_SAMPLES):
        assert host.decide(PATH_CASE, sample=True) is Decision.TRY
        trial(host)
    assert host.decide(PATH_CASE, sample=True) is Decision.MERGE


def test_all_of_it_is_kept() -> None:
    """pack() and unpack()."""
    host = aliases(case=PROVEN, folder=OFF)
    host.rule(FOLDER_FILE).why = "http://h/a/ and http://h/a/index.html"
    host.count(PATH_CASE, 7)
    host.count_beyond(PATH_CASE)
    host.learn_changing({b"abcd"})
    host.undo = FOLDER_FILE
    host.equal = {b"key": FOLDER_FILE}
    asked = trial(host)
    asked.look, asked.again, asked.second = b"look", b"again", Details(b"x", ((b"a", b"1"),))
    again = HostAliases.unpack(host.pack())
    assert (again.rules, again.trials, again.undo, again.changing, again.equal) == (
        host.rules, host.trials, host.undo, host.changing, host.equal,
    )  # fmt: skip
    assert HostAliases.unpack(None).rules == {}


@pytest.mark.parametrize(
    "host, rules, expected",
    [
        (aliases(), PATH_CASE, "by the path-case rule"),
        (aliases(case=OPEN), PATH_CASE, "by the path-case rule, on trial here"),
        (aliases(case=PROVEN), PATH_CASE, "by the path-case rule, proven 0 times here"),
        (
            aliases(case=PROVEN, folder=PROVEN),
            PATH_CASE | FOLDER_FILE,
            "by the path-case and folder-file rules, proven 0 times here",
        ),
    ],
)
def test_in_words(host: HostAliases, rules: int, expected: str) -> None:
    """As explain and fetch.log have it."""
    assert sentence(rules, host) == expected
