"""Whole sites, in process: what is fetched, stored and merged, and what a crash leaves of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice, product
from random import Random

import pytest

from larmspider.extraction.texts.fingerprint import RecentPages
from larmspider.frontier.dispatch import finish
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState, url_key
from larmspider.learned.deletes.table import Observation, decide
from larmspider.learned.spellings.aliases import Stage
from larmspider.urls.equivalence import FOLDER_FILE, PATH_CASE, SESSION_ID
from tests.support.frontier.site import Answer, Handler, Site, twins


def page(body: str) -> Answer:
    return Answer(body)


def without_case(target: str) -> Answer:
    return Answer(f"page {target.lower()}")


def with_case(target: str) -> Answer:
    return Answer(f"page {target}")


@pytest.fixture(params=["memory", "lmdb"])
def site(request: pytest.FixtureRequest, tmp_path) -> Callable[[Handler], Site]:
    opened: list[Backend] = []

    def open_lmdb() -> Backend:
        for backend in opened:
            backend.close()
        opened.append(LmdbBackend(tmp_path / "frontier"))
        return opened[-1]

    yield lambda handler: Site(handler, open_lmdb if request.param == "lmdb" else None)
    for backend in opened:
        backend.close()


def test_a_rule_that_holds_costs_three_fetches(site) -> None:
    """Ten pages in two spellings each, found together."""
    here = site(without_case)
    here.add(*twins(10))
    here.run()
    assert len(here.fetched) == 13
    assert len(here.stored) == 10
    assert here.counts == Counts(discovered=20, stored=10, merged=10)
    assert here.rules == ["path-case proven 3 times"]
    here.add("/PAGE3")
    here.run()
    assert len(here.fetched) == 13
    assert here.state("/PAGE3") is UrlState.MERGED


def test_a_rule_that_does_not_hold_loses_nothing(site) -> None:
    """What was held is fetched; further spellings are, too."""
    here = site(with_case)
    here.add(*twins(10))
    here.run()
    here.add("/PAGE3")
    here.run()
    assert sorted(here.stored) == sorted([*twins(10), "/PAGE3"])
    assert here.counts == Counts(discovered=21, stored=21)
    assert here.rules[0].startswith("path-case off: http://h/")


def test_a_proven_rule_that_turns_out_wrong_is_undone(site) -> None:
    """A sample differs: everything that was merged by the rule is fetched."""
    wrong = {f"/PAGE{n}" for n in range(1000)}

    def handler(target: str) -> Answer:
        return with_case(target) if target in wrong else without_case(target)

    here = site(handler)
    here.add(*twins(10))
    here.run()
    here.add(*sorted(wrong)[:400:40], *(f"/pagE{n}" for n in range(10)))
    here.run()
    assert here.rules == ["path-case proven 3 times"]
    sampled = next(
        f"/PAge{n}"
        for n in count()
        if url_key(f"http://h/PAge{n}")[-4:] and _is_sample(f"/PAge{n}")
    )
    wrong.add(sampled)
    here.add(sampled.lower())
    here.run()
    here.add(sampled)
    here.run()
    assert here.rules[0].startswith("path-case off")
    assert here.counts.merged == 0
    assert {f"/pagE{n}" for n in range(10)} <= {*here.stored}


def _is_sample(target: str) -> bool:
    return int.from_bytes(url_key(f"http://h{target}")[-4:], "big") % 100 == 0


def test_a_redirect_is_a_proof(site) -> None:
    """From either side; the target is fetched, and the redirect is stored as such."""

    def handler(target: str) -> Answer:
        if target.endswith("index.html"):
            return Answer(status=301, location=target.removesuffix("index.html"))
        return page(f"folder {target}")

    here = site(handler)
    here.add("/a/index.html", "/b/", "/b/index.html", "/c/index.html")
    here.run()
    here.add("/d/", "/d/index.html")
    here.run()
    assert here.rules[0].startswith("folder-file proven")
    assert {"/a/", "/b/", "/c/", "/d/"} <= {*here.stored}
    assert here.state("/d/index.html") is UrlState.MERGED


@pytest.mark.parametrize("status", [404, 500, 301])
def test_nothing_merges_into_a_url_that_is_no_200(site, status: int) -> None:
    """What was held for it is fetched; two 404s prove nothing."""

    def handler(target: str) -> Answer:
        good = target.islower()
        return page("found") if good else Answer("gone", status)

    here = site(handler)
    here.add("/FAQ", "/faq", "/Faq")
    here.run()
    assert sorted(here.stored) == ["/FAQ", "/Faq", "/faq"]
    assert not any("proven" in rule or "off" in rule for rule in here.rules)


def test_what_was_merged_into_a_page_that_fails_is_queued(site) -> None:
    """The rule is proven, and merged a URL into one that was still queued."""
    broken = set()

    def handler(target: str) -> Answer:
        return Answer("gone", 404) if target in broken else without_case(target)

    here = site(handler)
    here.add(*twins(4))
    here.run()
    broken.add("/New")
    here.add("/New", "/new")
    assert here.state("/new") is UrlState.MERGED
    here.run()
    assert here.stored[-2:] == ["/New", "/new"]


def clock_on_each_page() -> Handler:
    ticks = count(100)
    return lambda target: page(f"page {target.lower()} made at 12:{next(ticks)} today")


def test_numbers_that_change_from_fetch_to_fetch_do_not_count(site) -> None:
    """A clock on each page: the first URL of one pair is asked again to find out."""
    here = site(clock_on_each_page())
    for name in "abcde":
        here.add(f"/{name.upper()}{name}", f"/{name}{name}")
        here.run()
    assert here.rules == ["path-case proven 3 times"]
    assert len(here.fetched) == 5 + 3 + 1
    assert here.state("/ee") is UrlState.MERGED
    assert here.counts == Counts(discovered=10, stored=5, merged=5)


@pytest.mark.parametrize("found_together", [True, False])
def test_first_urls_that_are_not_remembered_are_asked_again(site, found_together: bool) -> None:
    """Twice for the first pair, once for the others: their first fetch is compared by nothing."""
    here = site(clock_on_each_page())
    here.merger.trials.recent = RecentPages(0)
    pages = [f"/Page{n}" for n in range(6)]
    here.add(*pages)
    here.run()
    if found_together:
        here.add(*map(str.lower, pages))
    for name in map(str.lower, pages):
        here.add(name)
        here.run()
    assert here.rules == ["path-case proven 3 times"]
    assert len(here.fetched) == 6 + 3 + 2 + 1 + 1
    assert sorted(here.stored) == pages


def test_known_changing_numbers_cost_no_further_fetch(site) -> None:
    """A page that is fetched once they are known is compared without them, however old it is."""
    here = site(clock_on_each_page())
    here.add(*twins(1))
    here.run()
    here.merger.trials.recent = RecentPages(0)
    here.add(*twins(3))
    here.run()
    assert here.rules == ["path-case proven 3 times"]
    assert len(here.fetched) == 3 + 3 + 1


def test_ids_are_numbers(site) -> None:
    """Session ids in the text, of letters and digits, and more of them each time."""
    ids = (f"{n * 7919:08X}" for n in count(1_000_000))
    here = site(lambda target: page(f"page {target.lower()} session {next(ids)} of {next(ids)}"))
    here.add(*twins(6))
    here.run()
    assert here.rules == ["path-case proven 3 times"]


@pytest.mark.parametrize("status", [404, 503])
def test_a_first_url_that_is_gone_when_it_is_asked_again_decides_nothing(site, status: int) -> None:
    """The other spelling is stored; what was only asked again is counted nowhere."""
    asked = Counter[str]()

    def handler(target: str) -> Answer:
        asked[target] += 1
        return Answer("gone", status) if asked["/Page0"] > 1 else with_case(target)

    here = site(handler)
    here.add(*twins(1))
    here.run()
    assert here.fetched == ["/Page0", "/page0", "/Page0", "/page0"]
    assert here.stored == ["/Page0", "/page0"]
    assert here.counts == Counts(discovered=2, stored=2)
    assert here.rules == ["path-case on trial, 0 of 3"]


@pytest.mark.parametrize("how", ["404", "503", "failed", "refused"])
def test_nothing_stays_merged_into_a_url_that_is_gone_when_it_is_asked_again(site, how) -> None:
    """Nor is anything merged into it later, after a restart too. Until it is there again."""
    name = "abcdefghij"
    sample = next(one for one in _spellings(name) if _is_sample(one))
    asked = Counter[str]()

    def handler(target: str) -> Answer:
        asked[target] += 1
        if target == f"/{name}" and asked[target] > 1:
            return Answer("gone", int(how))
        return with_case(target) if target == sample else without_case(target)

    here = site(handler)
    here.add(*twins(4), f"/{name}")
    here.run()
    here.add(f"/{name.title()}", f"/{name.upper()}", sample)
    assert here.state(f"/{name.upper()}") is UrlState.MERGED
    while here.fetched[-1] != sample:
        here.step()
    if not how.isdigit():
        here.clock.now += 60
        lease = here.frontier.pop()
        assert lease is not None
        visit = FetchRecord(UrlState[how.upper()], reason="timeout")
        here.frontier.failed_for_good(lease, visit, 1.0)
    here.run()
    assert {f"/{name.title()}", f"/{name.upper()}", sample} <= {*here.stored}
    assert here.rules == ["path-case proven 3 times"]
    here.frontier.checkpoint({})
    here.start()
    first = url_key(f"http://h/{name}")
    here.add("/ABcdefghij")
    merged = here.frontier.backend.merged(url_key("http://h/ABcdefghij"))
    assert merged is None or merged.into != first
    here.merger.final("h:80", first, FetchRecord(UrlState.STORED, status=200))
    assert here.merger.of("h:80").gone == []


def _spellings(name: str) -> Iterator[str]:
    """All but the one in lower case."""
    every = product(*((one, one.upper()) for one in name))
    return (f"/{''.join(letters)}" for letters in every if not all(map(str.islower, letters)))


def test_nothing_stays_merged_into_a_page_that_a_visit_again_finds_missing(site) -> None:
    """It is kept for now, and may be there again."""
    here = site(without_case)
    here.add(*twins(4))
    here.run()
    first = url_key("http://h/Page3")
    here.frontier.backend.schedule([(first, here.clock.now)])
    here.frontier.checkpoint({})
    (entry,) = here.frontier.backend.due("h:80", here.clock.now)
    assert entry.visit is not None
    missing = decide(entry.visit, Observation.MISSING, here.clock.now)
    assert not missing.delete
    finish(here.frontier, entry, missing.record)
    here.run()
    assert here.stored[-1] == "/page3"
    here.add("/PAGE3")
    merged = here.frontier.backend.merged(url_key("http://h/PAGE3"))
    assert merged is not None
    assert merged.into == url_key("http://h/page3")


def test_a_question_that_fails_is_no_failed_url(site) -> None:
    here = site(with_case)
    here.add(*twins(1))
    while here.fetched != ["/Page0", "/page0"]:
        here.step()
    here.clock.now += 60
    lease = here.frontier.pop()
    assert lease is not None
    assert lease.url == "http://h/Page0"
    here.frontier.failed_for_good(lease, FetchRecord(UrlState.FAILED, reason="timeout"), 1.0)
    here.run()
    assert here.stored == ["/Page0", "/page0"]
    assert here.counts == Counts(discovered=2, stored=2)


def test_numbers_that_do_not_change_count(site) -> None:
    """Pages whose numbers alone tell them apart are two."""
    versions = {"/V": "version 17", "/v": "version 21"}
    here = site(lambda target: page(versions[target]))
    here.add(*versions)
    here.run()
    assert sorted(here.stored) == ["/V", "/v"]
    assert here.rules[0].startswith("path-case off")


def test_of_the_numbers_only_those_that_change_are_left_out(site) -> None:
    """Versions beside a clock."""
    ticks = count(1000)
    versions = {"/V": "version 17", "/v": "version 21"}
    here = site(lambda target: page(f"{versions[target]}, at {next(ticks)}"))
    here.add(*versions)
    here.run()
    assert sorted(here.stored) == ["/V", "/v"]
    assert here.rules[0].startswith("path-case off")


def test_pages_that_differ_from_themselves_decide_nothing(site) -> None:
    """Everything is fetched, after three such pairs without asking again."""
    words = ("".join(letters) + "x" for letters in product("abcdefghij", repeat=4))
    here = site(lambda target: page(" ".join(islice(words, 20))))
    here.add(*twins(6))
    here.run()
    assert sorted(set(here.stored)) == sorted(twins(6))
    assert here.rules[0].startswith("path-case off: no verdict")


TEASERS = ("Try the new canteen", "Welcome back dear friend", "Sign up and save", "Tea at four")


def with_teasers(text: Callable[[str], str], seed: int) -> Handler:
    """Each answer has a counter, and one of four teasers behind it."""
    visitors, teasers = count(100), Random(seed)

    def answer(target: str) -> Answer:
        return page(f"{text(target)} visitor {next(visitors)} {teasers.choice(TEASERS)}")

    return answer


@pytest.mark.parametrize("seed", range(5))
def test_words_that_alternate_and_a_counter_do_not_count(site, seed: int) -> None:
    """As on a start page with teasers: the first URL is asked again, more than once where it has
    the same teaser."""
    here = site(with_teasers(str.lower, seed))
    for number in range(6):
        here.add(f"/Page{number}", f"/page{number}")
        here.run()
    assert here.rules == ["path-case proven 3 times"]
    assert sorted(here.stored) == sorted(f"/Page{number}" for number in range(6))
    assert len(here.fetched) <= 6 + 3 + 5


@pytest.mark.parametrize("seed", range(5))
def test_words_that_alternate_do_not_count_after_a_restart(site, seed: int) -> None:
    """The texts of the first pages are not known any more: the answers that come again count."""
    here = site(with_teasers(str.lower, seed))
    for number in range(6):
        here.add(f"/Page{number}")
        here.run()
        here.merger.trials.recent = RecentPages()
        here.add(f"/page{number}")
        here.run()
    assert here.rules == ["path-case proven 3 times"]
    assert sorted(here.stored) == sorted(f"/Page{number}" for number in range(6))


@pytest.mark.parametrize("proven", [0, 3])
def test_words_that_alternate_with_each_request_do_not_count(site, proven: int) -> None:
    """The first URL has the same words whenever it is asked, since another URL is asked between:
    the second one shows that words alternate. Also by a sample of a rule that is proven."""
    names = (f"page{number}" for number in range(9, 999))
    sample = next(name for name in names if _is_sample(f"/{name}"))
    turns = {f"/{sample}": iter(["Buy one now"])}

    def answer(target: str) -> Answer:
        offer = next(turns.get(target, iter(())), "Order your copy today")
        return page(f"All that there is to say of {target.lower()} is said here. {offer}")

    here = site(answer)
    for number in range(proven):
        here.add(f"/Page{number}", f"/page{number}")
        here.run()
    here.add(f"/{sample.title()}", f"/{sample}")
    here.run()
    assert here.stored == [*(f"/Page{number}" for number in range(proven)), f"/{sample.title()}"]
    assert here.fetched[-1] == f"/{sample}"


def test_a_failed_question_about_the_second_url_says_nothing_of_the_first(site) -> None:
    """Later spellings are merged into it, as before."""
    sample = next(name for name in _spellings("abcdefghij") if _is_sample(name))
    offers = {sample: iter(["Buy one now"])}

    def answer(target: str) -> Answer:
        offer = next(offers.get(target, iter(())), "Order your copy today")
        return page(f"All that there is to say of {target.lower()} is said here. {offer}")

    here = site(answer)
    here.add(*twins(3))
    here.run()
    here.add("/Abcdefghij", sample)
    while here.fetched[-3:] != [sample, "/Abcdefghij", "/Abcdefghij"]:
        here.step()
    here.clock.now += 60
    lease = here.frontier.pop()
    assert lease is not None
    here.frontier.failed_for_good(lease, FetchRecord(UrlState.FAILED, reason="timeout"), 1.0)
    here.run()
    assert here.merger.of("h:80").gone == []
    here.add("/ABCDEFGHIJ")
    assert here.state("/ABCDEFGHIJ") is UrlState.MERGED


@pytest.mark.parametrize("between", range(4))
@pytest.mark.parametrize("begin", range(2))
def test_every_second_answer_has_other_words(site, begin: int, between: int) -> None:
    """However many requests for other URLs come between, and for other pairs."""
    hits = count(begin)

    def answer(target: str) -> Answer:
        offer = ("Buy one now", "Order your copy today")[next(hits) % 2]
        for _ in range(between if target.startswith("/page") else 0):
            next(hits)
        return page(f"All that there is to say of {target.lower()} is said here. {offer}")

    here = site(answer)
    for number in range(12):
        here.add(f"/Page{number}", f"/page{number}")
        here.run()
    assert here.rules == ["path-case proven 3 times"]
    assert here.stored == [f"/Page{number}" for number in range(12)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "text",
    [
        lambda target: f"item {'one' if target.islower() else 'two'} of the shop",
        lambda target: f"price {17 if target.islower() else 21} of the item",
        lambda target: "new text here" if target.islower() else "",
    ],
)
def test_pages_that_differ_beside_what_alternates_are_two(
    site, seed: int, text: Callable[[str], str]
) -> None:
    """By one word, by a number, by a sentence."""
    here = site(with_teasers(text, seed))
    for pair in (twins(1), ["/Other", "/other"], ["/Third", "/third"]):
        here.add(*pair)
        here.run()
    assert len(set(here.stored)) == 6
    assert here.rules[0].startswith("path-case off")


def test_session_ids_do_not_make_a_site_infinite(site) -> None:
    """Each answer has links with a session of its own."""
    sessions = count(1)

    def handler(target: str) -> Answer:
        path, sid = target.partition("?")[0], next(sessions)
        return Answer(f"page {path}", links=tuple(f"/p{n}?sid={sid}" for n in range(5)))

    here = site(handler)
    here.add("/p0")
    here.run()
    assert here.rules == ["session-id proven 3 times"]
    assert len(here.fetched) <= 5 + 3 + 3
    assert here.merger.of("h:80").rule(SESSION_ID).merged == here.counts.merged


def test_one_page_may_be_asked_again_for_each_pair(site) -> None:
    """Pages that show their session, which changes: all pairs have the same first URL."""
    sessions = count(1_000_000)
    here = site(lambda target: page(f"your session is {next(sessions)}"))
    here.add(*(f"/p?sid={n}" for n in range(8)))
    here.run()
    assert here.rules == ["session-id proven 3 times"]
    assert here.state("/p?sid=7") is UrlState.MERGED


@pytest.mark.parametrize("pairs", [1, 2])
@pytest.mark.parametrize("stops", [False, True])
def test_a_pair_is_one_proof(site, stops: bool, pairs: int) -> None:
    """A host runs out of URLs after an equal pair or two; what is found later is other pages."""
    equal = {f"/{n}/index.html": f"/{n}/" for n in range(pairs)}
    here = site(lambda target: page(equal.get(target, target)))
    here.add(*equal.values(), *equal)
    here.run()
    if stops:
        here.frontier.checkpoint({})
        here.start()
        here.run()
    assert here.rules == [f"folder-file on trial, {pairs} of 3"]
    assert sorted(here.fetched) == sorted([*equal.values(), *equal])
    assert here.counts.merged == pairs
    later = [f"/{name}/{file}" for name in "abc" for file in ("", "index.html")]
    here.add(*later)
    here.run()
    assert {*later} <= {*here.stored}
    assert here.rules[0].startswith("folder-file off")


def test_a_pair_tries_one_rule(site) -> None:
    """/A/index.html beside /a/ says nothing about either rule; it is fetched."""
    here = site(with_case)
    here.add("/a/", "/A/index.html")
    here.run()
    assert sorted(here.stored) == ["/A/index.html", "/a/"]
    assert here.rules == []


def test_rules_that_are_proven_are_merged_together(site) -> None:
    """Once each is proven by itself."""
    here = site(lambda target: page(target.lower().removesuffix("index.html")))
    here.add(*twins(4))
    here.add(*(f"/{name}/{file}" for name in "abcd" for file in ("", "index.html")))
    here.run()
    assert here.rules == ["path-case proven 3 times", "folder-file proven 3 times"]
    fetched = len(here.fetched)
    here.add("/A/index.html")
    here.run()
    assert len(here.fetched) == fetched
    merged = here.frontier.backend.merged(url_key("http://h/A/index.html"))
    assert merged.rules == PATH_CASE | FOLDER_FILE


@pytest.mark.parametrize("kind", ["holds", "has a clock", "does not hold"])
def test_a_crash_at_any_moment_changes_no_verdict(site, kind: str) -> None:
    """After each number of fetches, with a checkpoint some fetches before."""
    holds = kind != "does not hold"
    wanted = 10 if holds else 20
    for crash in (9, *range(0, 24, 2)):
        clock = clock_on_each_page() if kind == "has a clock" else without_case
        here = site(clock if holds else with_case)
        here.add(*twins(10))
        here.frontier.checkpoint({})
        for done in range(crash):
            here.step()
            if done == crash // 2:
                here.frontier.checkpoint({})
                kept = list(here.stored)
        if crash:
            here.stored = kept
        here.start()
        here.run()
        assert len(set(here.stored)) == wanted, crash
        assert here.stored.count("/Page3") == 1
        assert here.rules[0].startswith("path-case proven" if holds else "path-case off")
        for name in twins(10):
            assert here.state(name) is not UrlState.UNKNOWN
        if here.disk.image.committed is False:
            return  # one directory serves one crawl


def test_a_crash_while_the_only_pair_is_compared(site) -> None:
    """Nothing is merged yet: the pair is taken up, and what is found later waits for no verdict."""
    here = site(without_case)
    here.add("/Page0")
    here.run()
    here.add("/page0")
    here.frontier.checkpoint({})
    here.start()
    here.run()
    assert here.rules == ["path-case on trial, 1 of 3"]
    assert here.state("/page0") is UrlState.MERGED
    here.add(*twins(10))
    here.run()
    assert here.counts.merged == 10
    assert len(here.stored) == 10


def test_what_was_merged_into_a_copy_goes_to_its_page(site) -> None:
    """/b/index.html merges into /b/, which is queued for a trial and found to be /B/."""
    here = site(lambda target: page(target.lower().removesuffix("index.html")))
    here.add(*(f"/{name}/{file}" for name in "cde" for file in ("", "index.html")))
    here.run()
    here.add("/B/")
    here.run()
    here.add("/b/")
    here.add("/b/index.html", "/b/Index.html")
    held = here.frontier.backend.merged(url_key("http://h/b/index.html"))
    assert held is not None
    assert held.into == url_key("http://h/b/")
    here.run()
    for name in ("/b/", "/b/index.html", "/b/Index.html"):
        merged = here.frontier.backend.merged(url_key(f"http://h{name}"))
        if merged is not None:
            assert merged.into == url_key("http://h/B/")
    assert here.merger.stand_ins["http://h/b/"] == "http://h/B/"
    aliases = here.merger.of("h:80")
    assert not aliases.trials
    for rule in (PATH_CASE, FOLDER_FILE):
        keys = here.frontier.backend.merged_of("h:80", 99)
        rules = [here.frontier.backend.merged(key).rules for key in keys]
        assert aliases.rule(rule).merged == sum(bool(one & rule) for one in rules)


def test_a_trial_whose_first_url_is_a_copy_goes_on_with_its_page(site) -> None:
    """/b/index.html is held for /b/, the first URL of its pair, which is found to be /B/."""
    here = site(lambda target: page(target.lower().removesuffix("index.html")))
    here.add("/B/")
    here.run()
    here.add("/b/", "/b/index.html")
    assert [trial.stage for trial in here.merger.of("h:80").trials] == [
        Stage.FETCHING,
        Stage.WAITING,
    ]
    here.run()
    assert here.merger.of("h:80").trials == []
    assert here.merger.of("h:80").held == 0
    for name in ("/b/", "/b/index.html"):
        merged = here.frontier.backend.merged(url_key(f"http://h{name}"))
        assert merged is None or merged.into == url_key("http://h/B/")


def test_beyond_so_many_merged_urls_they_are_counted(site, monkeypatch) -> None:
    """They stay unknown, and are not fetched."""
    monkeypatch.setattr("larmspider.learned.spellings.aliases.MAX_MERGED", 10)
    here = site(without_case)
    here.add(*twins(12))
    here.run()
    stored = list(here.stored)
    here.add(*(f"/pAgE{n}" for n in range(5)))
    here.run()
    record = here.merger.of("h:80").rule(PATH_CASE)
    assert (record.merged, record.beyond > 0) == (10, True)
    assert here.stored == stored


def test_links_lead_to_the_page_that_stands_for_a_url(site) -> None:
    """In memory, and read again after a restart."""
    here = site(without_case)
    here.add(*twins(5))
    here.run()
    assert here.merger.stand_ins["http://h/page4"] == "http://h/Page4"
    here.frontier.checkpoint({})
    here.start()
    assert here.merger.stand_ins == {}
    assert here.frontier.known(["http://h/page4"]) == [True]
    assert here.merger.stand_ins == {"http://h/page4": "http://h/Page4"}
