"""The last lines of a crawl on the terminal: stored, rejected and failed, and where to look."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider import options, program, stats
from larmspider.files import how_to_make_room
from larmspider.formatting import counted, size
from larmspider.items import Outcome
from larmspider.learned.deletes.table import DAY, TABLE, Observation
from larmspider.learned.shortfall import SHOWN
from larmspider.status.freshness import requests_by_purpose, requests_in_words
from larmspider.workdir.manifest import files_of_stores

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

UNKNOWN = "unknown"
"""The reason of a crawl that was ended before it could close, as by a second Ctrl-C."""
NO_SEED = "no-seed"
"""The reason of a crawl that ended because no seed could be fetched."""
_REJECTED = re.compile(stats.FILTER_REJECTED.format(filter="([^/]+)"))
_RUN = re.compile(stats.RUN.format(state="([a-z]+)"))
_VISITS = re.compile(stats.REFRESH.format(seen="([^/]+)"))
_RUN_STATUS = re.compile(stats.RUN_STATUS.format(status="([^/]+)"))
_RUN_FAILED = re.compile(stats.RUN_FAILED.format(kind="([^/]+)"))
_FAILED = re.compile(stats.FETCH_FAILED_KIND.format(kind="([^/]+)"))
_FRONTIER = re.compile(stats.FRONTIER.format(state="([a-z]+)"))
_UNREAD = re.compile(stats.EXTRACTION_UNREAD.format(outcome="([a-z-]+)"))
_ALIASES = re.compile(stats.ALIASES.format(rule="([a-z-]+)", state="([a-z]+)"))
_REQUISITES = re.compile(stats.REQUISITES.format(state="([a-z]+)"))
_ENDS = ("stored", "failed", "refused")
_SENT = re.compile(stats.OUTBOX_SENT.format(receiver="([^/]+)"))
_STATUS = re.compile(stats.PAGE_FILES_STATUS.format(status="([0-9]+)"))


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals of one run. ``pages`` and ``failed`` are URLs by their end in the frontier: a URL that
    ends in a server error has failed, although its last answer is in the page files. Under another
    scheduler they are the counts of the stores and the spider. ``rejected`` counts links by filter
    (one URL may be linked often); links to pages already known are in ``known``.
    """

    directory: Path
    reason: str
    pages: int
    bytes: int | None
    """Bytes of bodies in page files, or in WARC files (LARM_BODIES); None without page files."""
    statuses: dict[str, int]
    known: int
    rejected: dict[str, int]
    failed: dict[str, int]
    urls: dict[str, int]
    """URLs of the whole crawl by state, earlier runs included; empty without a frontier."""
    logins: str = ""
    """Hosts that wait for their login, with the reasons."""
    scripts: str = ""
    """Hosts whose pages are empty without JavaScript."""
    shortfalls: tuple[str, ...] = ()
    """Why little of seeds' hosts is stored, a sentence a host."""
    alike: tuple[str, ...] = ()
    """Hosts that answered 200 with one text to many URLs, a sentence a host."""
    bodies_in: str = "page files"
    given_up: int = 0
    """Hosts that are left alone until the next run."""
    broken: str = ""
    """Why the crawl broke off."""
    has_fetch_log: bool = True
    beyond_max_pages: int = 0
    """URLs left because LARM_MAX_PAGES is reached."""
    beyond_host_budget: int = 0
    """URLs left on hosts whose budget is used up; ``hosts_spent`` counts these hosts."""
    hosts_spent: int = 0
    held: int = 0
    """URLs left that are held as traps."""
    fenced: bool = False
    """Other workers have taken over: the command should be run again."""
    redis_gave_up: bool = False
    """The worker had to stop, and Redis could not be used for its last commit."""
    seed_problem: str = ""
    """A seed that could not be fetched, and why."""
    shared: bool = False
    """This is one of many workers: ``urls`` belong to the hosts that it has at the end, and another
    worker may have all the pages."""

    is_push: bool = False
    """The run stored documents that the server was given, or only removed pages."""
    unread: dict[str, int] = field(default_factory=dict)
    """Documents that were stored without their text, or some of it, by outcome."""
    sent: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By receiver the numbers of taken, refused and waiting entries."""
    rules: tuple[str, ...] = ()
    """Proven rules about spellings of URLs, by host, in words."""

    refresh: str = ""
    """LARM_REFRESH."""
    requisites: dict[str, int] = field(default_factory=dict)
    """Images, styles and scripts of pages, by outcome."""
    next_refresh: dict[str, str] = field(default_factory=dict)
    """When something is ``due`` next, what ``waits``, and the first pages that ``left`` and
    ``came``."""
    visits: dict[str, int] = field(default_factory=dict)
    """Visits again, by observation; the ``requests`` for them, and pages ``not_asked``."""
    spent: dict[str, int] = field(default_factory=dict)
    """All requests of a refresh, by purpose."""

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        counters = crawler.stats.get_stats()
        rejected = _matching(counters, _REJECTED)
        known = rejected.pop("visited", 0)
        rejected.pop("robots", None)  # these are URLs, and counted in ``urls``
        urls, run = _matching(counters, _FRONTIER), _matching(counters, _RUN)
        files = {name for own in files_of_stores(crawler.settings).values() for name in own}
        get: Callable[..., Any] = counters.get
        if urls or run:
            pages, statuses = run.get("stored", 0), _matching(counters, _RUN_STATUS)
            failed = _matching(counters, _RUN_FAILED)
        else:
            seen = get(stats.FOLLOW_PAGES, 0) or get("item_scraped_count", 0)
            statuses, failed = _matching(counters, _STATUS), _matching(counters, _FAILED)
            errors = {name: statuses.pop(name) for name in [*statuses] if name[:1] in "45"}
            pages = get(stats.PAGE_FILES_PAGES, seen) - sum(errors.values())
            failed |= {f"http-{name}": number for name, number in errors.items()}
        in_warc = options.text(crawler.settings, "LARM_BODIES") == "warc"
        return cls(
            directory=options.larm_dir(crawler.settings),
            bodies_in="WARC files" if in_warc else "page files",
            reason=str(counters.get("finish_reason", UNKNOWN)),
            pages=pages,
            bytes=get(stats.PAGE_FILES_BYTES, 0) if "store.log" in files else None,
            statuses=statuses,
            known=known,
            rejected=rejected,
            failed=failed,
            urls=urls,
            scripts=str(get(stats.SCRIPT_HOSTS, "")),
            alike=tuple(str(get(stats.ALIKE, "")).splitlines()),
            shortfalls=tuple(str(get(stats.SHORTFALLS, "")).splitlines()),
            logins=str(get(stats.LOGIN_WAITS, "")),
            given_up=get(stats.HOSTS_GIVEN_UP, 0),
            broken=str(get(stats.BROKEN, "")),
            has_fetch_log="fetch.log" in files,
            beyond_max_pages=get(stats.LEFT.format(why="max_pages"), 0),
            beyond_host_budget=get(stats.LEFT.format(why="host_budget"), 0),
            held=get(stats.LEFT.format(why="traps"), 0),
            hosts_spent=get(stats.HOSTS_SPENT, 0),
            seed_problem=str(get(stats.SEED_PROBLEM, "")),
            fenced=bool(get(stats.FENCED, 0)),
            redis_gave_up=bool(get(stats.REDIS_GAVE_UP, 0)),
            shared=options.many_workers(crawler.settings),
            is_push=options.boolean(crawler.settings, "LARM_PUSH"),
            rules=_rules(counters),
            unread=_matching(counters, _UNREAD),
            sent={
                name: (
                    number,
                    counters.get(stats.OUTBOX_DEAD.format(receiver=name), 0),
                    counters.get(stats.OUTBOX_WAITING.format(receiver=name), 0),
                )
                for name, number in _matching(counters, _SENT).items()
            },
            refresh=options.text(crawler.settings, "LARM_REFRESH").strip(),
            requisites=_matching(counters, _REQUISITES),
            visits=_matching(counters, _VISITS),
            spent=requests_by_purpose(counters),
            next_refresh={
                name: str(get(key, ""))
                for name, key in (
                    ("left", stats.REFRESH_LEFT),
                    ("dead", stats.REFRESH_DEAD),
                    ("came", stats.REFRESH_CAME),
                    ("waits", stats.REFRESH_WAITS),
                    ("due", stats.REFRESH_NEXT),
                )
            },
        )

    @property
    def exit_status(self) -> int:
        """0: the crawl ended, or was stopped on request. 1: it broke off, did not close, or stored
        nothing. 75 (EX_TEMPFAIL): other workers have taken over, or it was stopped while Redis was
        away; run it again."""
        if self.fenced or self.redis_gave_up:
            return 75
        if self.broken or self.reason in (UNKNOWN, NO_SEED):
            return 1
        return int(self.has_nothing)

    @property
    def has_nothing(self) -> bool:
        """Whether the crawl came to its end without a page, redirects apart."""
        if self.shared or self.is_push or self.reason != "finished":
            return False
        cut = self.beyond_max_pages or self.beyond_host_budget
        return max(self.pages, self.urls.get("stored", 0)) <= (0 if cut else self._redirects)

    @property
    def _redirects(self) -> int:
        return sum(number for status, number in self.statuses.items() if status[:1] == "3")

    @property
    def complaint(self) -> str:
        """Why an ended crawl has exit status 1, in words; "" if it has another status."""
        if self.broken:
            return f"the crawl broke off: {self.broken}{_after_a_break(self.broken)}"
        if self.reason == NO_SEED:
            why = self.seed_problem or "no host has answered"
            return f"no seed answered (LARM_SEED_PATIENCE_SECS): {why}"
        if not self.has_nothing:
            return ""
        refused = self.urls.get("refused", 0)
        parts = [f"{counted(self.pages - self._redirects, 'page')} stored"]
        if self._redirects:
            parts.append(counted(self._redirects, "redirect"))
        if any(self.failed.values()):
            parts.append(_failures(self.failed))
        if refused:
            parts.append(f"{refused:,} refused by robots.txt, a store or the operator")
        why = f"; {self.seed_problem}" if self.seed_problem else ""
        return f"nothing to search: {', '.join(parts)}{why}"

    def lines(self) -> Iterator[str]:
        """The last lines of a crawl: about this run, then all of it. One of many workers counts its
        own stored pages, then the hosts that it has at the end."""
        reached = "; LARM_MAX_PAGES is reached" if self.beyond_max_pages else ""
        yield f"{'ended':<11} {'broken' if self.broken else self.reason}{reached}"
        if self.refresh:
            yield from self._refreshed()
        by_whom = " by this worker in this run" if self.shared else ""
        files = "without" if self.bytes is None else f"{size(self.bytes)} in"
        yield (
            f"{'stored':<11} {counted(self.pages, 'page')}{by_whom}, {files} {self.bodies_in}"
            f" ({_listed(self.statuses, 'HTTP ')}) in {self.directory}"
        )
        yield (
            f"{'rejected':<11} {counted(sum(self.rejected.values()), 'link')}"
            f" ({_listed(self.rejected)}); {self.known:,} links to known pages"
        )
        told = f", each with its reason in {self.directory / 'fetch.log'}"
        yield (
            f"{'failed':<11} {counted(sum(self.failed.values()), 'URL')} ({_failures(self.failed)})"
            f"{told if any(self.failed.values()) and self.has_fetch_log else ''}"
        )
        if unread := {key: n for key, n in self.unread.items() if key != Outcome.BINARY}:
            yield (
                f"{'unread':<11} {counted(sum(unread.values()), 'document')}"
                f" ({_listed(unread)}); stored, and found by title and link texts"
            )
        if binary := self.unread.get(Outcome.BINARY, 0):
            yield (
                f"{'binary':<11} {counted(binary, 'file')}: programs, fonts, pictures, sound and"
                " films; stored, and found by name and link texts"
            )
        if self.requisites:
            ended = {state: self.requisites.get(state, 0) for state in _ENDS}
            yield (
                f"{'besides':<11} {counted(sum(ended.values()), 'requisite')} of pages"
                f" ({_listed(ended)}): images, styles and scripts"
            )
        for label, (name, (sent, dead, waiting)) in zip(
            ("sent", *[""] * len(self.sent)), self.sent.items(), strict=False
        ):
            refused = f", {counted(dead, 'dead letter')} (outbox/{name}.dead.log)" if dead else ""
            left = f", {waiting:,} wait: {program.NAME} outbox --send sends them" if waiting else ""
            yield f"{label:<11} {sent:,} to {name}{refused}{left}"
        if self.urls:
            yield from self._known()
        if self.scripts:
            yield (
                f"{'empty':<11} without JavaScript: {self.scripts}; render = true in"
                " LARM_SITES_FILE runs it"
            )
        if self.logins:
            yield f"{'waits':<11} {self.logins}"
        for line in self.shortfalls[:SHOWN]:
            yield f"{'little':<11} {line}"
        if (more := len(self.shortfalls) - SHOWN) > 0:
            yield f"{'little':<11} {counted(more, 'more host')}: {program.NAME} report names them"
        for line in self.alike[:SHOWN]:
            yield f"{'alike':<11} {line}"
        if (more := len(self.alike) - SHOWN) > 0:
            yield f"{'alike':<11} {counted(more, 'more host')}"
        yield from self._left(self.urls.get("queued", 0))

    def _known(self) -> Iterator[str]:
        """All known URLs by outcome; the numbers add up."""
        ended = {
            state: self.urls.get(state, 0) for state in ("stored", "failed", "merged", "refused")
        }
        discovered = self.urls.get("discovered", 0)
        waiting = discovered - sum(ended.values())
        parts = [f"{ended['stored']:,} stored", f"{ended['failed']:,} failed"]
        if ended["refused"]:
            parts.append(f"{ended['refused']:,} refused (robots.txt, a store or the operator)")
        if ended["merged"]:
            parts.append(counted(ended["merged"], "duplicate"))
        parts += self._waiting(waiting)
        hosts = "this worker's hosts: " if self.shared else ""
        yield f"{'known':<11} {hosts}{counted(discovered, 'URL')}: {', '.join(parts)}"
        if ended["merged"]:
            which = f": {'; '.join(self.rules)}" if self.rules else ""
            yield (
                f"{'duplicates':<11} {counted(ended['merged'], 'URL')} (same page as another"
                f" URL{which}); list: {program.NAME} links --aliases"
                f" --dir {shlex.quote(str(self.directory))}"
            )

    def _waiting(self, waiting: int) -> Iterator[str]:
        """The URLs without an outcome, by what keeps them from one."""
        beyond = self.beyond_max_pages + self.beyond_host_budget
        if queued := waiting - beyond - self.held:
            yield f"{queued:,} queued"
        if self.held:
            yield f"{self.held:,} held"
        if beyond:
            yield f"{beyond:,} not fetched (budget)"

    def _refreshed(self) -> Iterator[str]:
        """The lines of a refresh: observations, removed and new pages, pending and next ones."""
        due = self.next_refresh.get("due", "")
        seen = {word: number for word, number in self.visits.items() if word != "not_asked"}
        if due and not self.pages and not any(seen.values()):
            yield f"{'refresh':<11} nothing was due (next: {due})"
            due = ""
        else:
            for number, line in enumerate(visited(self.visits, self.pages, self.spent)):
                yield f"{'' if number else 'refresh':<11} {line}"
        for name in ("left", "dead", "came", "waits"):
            if text := self.next_refresh.get(name, ""):
                yield f"{name:<11} {text}"
        if due:
            yield f"{'next':<11} {due}"

    def _left(self, queued: int) -> Iterator[str]:
        """URLs that are still queued, by the step that they need."""
        if self.beyond_max_pages:
            yield (
                f"{'left':<11} {counted(self.beyond_max_pages, 'URL')} beyond LARM_MAX_PAGES;"
                " run the same command with a larger one to continue"
            )
        if self.beyond_host_budget:
            yield (
                f"{'left':<11} {counted(self.beyond_host_budget, 'URL')} beyond the budgets of"
                f" {counted(self.hosts_spent, 'host')} (LARM_HOST_MAX_PAGES, LARM_HOST_RULES);"
                " run the same command with larger ones to continue"
            )
        if self.held:
            yield (
                f"{'left':<11} {counted(self.held, 'URL')} held: similar URLs had nothing new,"
                f" or no end (LARM_TRAPS, LARM_CLASS_PAGES); {program.NAME} explain URL says why"
            )
        if left := queued - self.beyond_max_pages - self.beyond_host_budget - self.held:
            were = "was" if self.given_up == 1 else "were"
            hosts = f"; {counted(self.given_up, 'host')} {were} given up" if self.given_up else ""
            yield (
                f"{'left':<11} {counted(left, 'URL')} still queued;"
                f" run the same command to continue{hosts}"
            )


_MENDS = (f"{program.NAME} verify", f"{program.NAME} reindex", f"{program.NAME} workers --rebuild")
"""Commands: a text that names one of them says what to do."""


def _after_a_break(why: str) -> str:
    """The advice for an error without its own advice."""
    if any(command in why for command in _MENDS):
        return ""
    again = "run the same command to continue from its last checkpoint"
    if room := how_to_make_room(why):
        return f"; {room}, and {again}"
    return f"; {again}. If it breaks off again, {program.NAME} verify names the damage"


def visited(visits: Mapping[str, int], new: int, spent: Mapping[str, int]) -> list[str]:
    """Lines about a refresh: observations with ``new`` pages, requests for known pages, known
    pages that were not visited, and all requests by purpose (``spent``)."""
    seen = {**visits}
    requests, not_asked = seen.pop("requests", 0), seen.pop("not_asked", 0)
    removed = seen.pop("removed", 0)
    same = sum(seen.pop(str(word), 0) for word in (Observation.SAME, Observation.NOT_MODIFIED))
    parts = [f"{seen.pop(Observation.CHANGED, 0):,} changed", f"{new:,} new"]
    words = set(map(str, Observation))
    for word, number in ((word, seen[word]) for word in seen if word in words):
        if (rule := TABLE.get(Observation(word))) is not None and rule.confirmations > 1:
            days = counted(round(rule.spread / DAY), "day")
            word += f" (removed after {rule.confirmations} such visits over {days})"
        parts.append(f"{number:,} {word}")
    parts += [f"{removed:,} removed"] * bool(removed) + [f"{same:,} as before"]
    return [
        ", ".join(parts),
        f"{counted(requests, 'request')} for known pages;"
        f" {counted(not_asked, 'known page')} not visited",
        *filter(None, [requests_in_words(spent)]),
    ]


def _matching(counters: dict[str, int], key: re.Pattern[str]) -> dict[str, int]:
    """Counters whose keys match, by the part that varies, largest first."""
    found = {match[1]: value for name, value in counters.items() if (match := key.fullmatch(name))}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


_GONE = ("http-404", "http-410")


def _failures(failed: dict[str, int]) -> str:
    """Failures by kind: ``12 not found, http-500 3``."""
    gone = sum(failed.get(kind, 0) for kind in _GONE)
    others = {kind: number for kind, number in failed.items() if kind not in _GONE}
    parts = [f"{gone:,} not found"] * bool(gone) + [_listed(others)] * bool(others)
    return ", ".join(parts) or "none"


def _listed(counts: dict[str, int], prefix: str = "") -> str:
    """``prefix`` stands before numbers."""
    named = ((prefix if name.isdigit() else "", name, count) for name, count in counts.items())
    return (
        ", ".join(f"{before}{name} {count:,}" for before, name, count in named if count) or "none"
    )


def _rules(counters: Mapping[str, Any]) -> tuple[str, ...]:
    """``path-case proven on 2 hosts, off on 1``, for each rule with URLs to compare."""
    by_rule: dict[str, dict[str, int]] = {}
    for key, number in counters.items():
        if found := _ALIASES.fullmatch(key):
            by_rule.setdefault(found[1], {})[found[2]] = number
    rows = []
    for rule, states in sorted(by_rule.items()):
        parts = [
            f"{'on trial' if state == 'trial' else state} on {states[state]:,}"
            for state in ("proven", "trial", "off")
            if state in states
        ]
        hosts = "host" if sum(states.values()) == 1 else "hosts"
        rows.append(f"{rule} {', '.join(parts)} {hosts}")
    return tuple(rows)
