"""The frontier in words, for ``scrapy hosts`` and ``scrapy explain``, read beside the crawl.

a:80  snoozed  queued 12  stored 340  delay 10 s (robots.txt Crawl-delay)  next 14:02:11  http-503
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from larmspider import program
from larmspider.extraction.texts.novelty import Bloom
from larmspider.formatting import counted, duration, utc
from larmspider.frontier.hosts import HostPace, HostRecord, HostState, local_hour, unpack_host
from larmspider.frontier.overrides import NOTE, Overrides
from larmspider.frontier.politeness import Gap, Limits, Politeness
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import (
    HELD_FROM,
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    host_of,
)
from larmspider.frontier.strategies import BreadthFirst, Strategy, level_of
from larmspider.learned.broken_views import NOTE as VIEWS
from larmspider.learned.broken_views import broken_view_of, views_in_words
from larmspider.learned.deletes.table import DEAD_SECS, TABLE, Observation, in_words, is_confirmed
from larmspider.learned.revisits.plan import ASKED, CONFIRM, PLANNED, SIGNALLED
from larmspider.learned.revisits.refresh import DAY
from larmspider.learned.spellings.aliases import HostAliases, sentence
from larmspider.learned.traps.host_traps import LEVELS, PROBE, STEPS, Budgets, HostTraps, Met
from larmspider.learned.traps.trap_watch import LEARN, OFF, VALUES
from larmspider.learned.traps.trap_watch import NOTE as TRAPS


@dataclass(frozen=True, slots=True)
class HostRow:
    """``state`` in words, ``next_time`` in seconds since the epoch (inf: not in this run).

    ``record`` and ``rule`` are what the rest was made of.
    """

    host: str
    state: str
    counts: Counts
    gap: Gap
    next_time: float
    reason: str
    record: HostRecord
    rule: HostPace

    @property
    def budget_left(self) -> int | None:
        """The pages that the host's budget still allows; None without a budget. A URL in flight
        counts as a page."""
        if self.rule.budget is None:
            return None
        return max(0, self.rule.budget - self.counts.stored - self.counts.leased)

    @property
    def budget_is_spent(self) -> bool:
        return self.budget_left == 0


class NextRequest(NamedTuple):
    """When a host gets its next request: ``short`` for a table, ``sentence`` for people. ``time``
    in seconds since the epoch, None if it is not known."""

    short: str
    sentence: str
    time: float | None = None


NO_TIME = "–"


def next_request(row: HostRow, now: float, stopped: str = "") -> NextRequest:
    """``stopped``: a sentence that says why the whole crawl sends nothing, "" while it does."""
    counts, at = row.counts, row.next_time
    for is_so, why in (
        (not counts.queued, "Its queue is empty."),
        (bool(stopped), stopped),
        (row.state == PAUSED, "Nothing is sent until the operator resumes it."),
        (row.record.waits_for_login, "Nothing is sent until the crawl is signed in there."),
        (not counts.to_fetch, "All its queued URLs are held."),
        (row.budget_is_spent, "Its budget of pages is used up."),
        (row.record.state is HostState.LOADING, "Nothing else is sent before robots.txt is read."),
    ):
        if is_so:
            return NextRequest(NO_TIME, why)
    if at == inf:
        return NextRequest("never", "No more requests in this run.")
    if at <= now:
        return NextRequest("now", "Requests may be sent now.", at)
    wait = duration(at - now)
    return NextRequest(f"in {wait}", f"Next request in {wait}.", at)


class HostColumn(NamedTuple):
    """A column of the table of hosts, by which its rows may be sorted."""

    title: str
    value: Callable[[HostRow], Any]
    largest_first: bool = False


HOST_COLUMNS: Mapping[str, HostColumn] = {
    "host": HostColumn("Host", lambda row: row.host),
    "state": HostColumn("State", lambda row: row.state),
    "queued": HostColumn("Queued", lambda row: row.counts.queued, True),
    "retry": HostColumn("To retry", lambda row: row.counts.delayed, True),
    "stored": HostColumn("Stored", lambda row: row.counts.stored, True),
    "failed": HostColumn("Failed", lambda row: row.counts.failed, True),
    "refused": HostColumn("Refused", lambda row: row.counts.refused, True),
    "in-flight": HostColumn("In flight", lambda row: row.counts.leased, True),
    "delay": HostColumn("Delay", lambda row: row.gap.seconds, True),
    "next": HostColumn("Next", lambda row: row.next_time),
}
_STATE_WORDS = {
    HostState.NEW: "new",
    HostState.LOADING: "loading robots",
    HostState.READY: "ready",
    HostState.SNOOZED: "snoozed",
    HostState.PARKED: "parked",
}
PAUSED = "paused"
HOST_STATES = (*_STATE_WORDS.values(), PAUSED)
"""All words for ``HostRow.state``."""


_FAILURES = {
    "dns": "no address found",
    "refused": "connection refused",
    "unmounted": "a root of files is empty or not there: is the share mounted?",
    "sign-in": "the account of the sites file is refused, or the file has none for this server",
    "locked": "another program has locked the file",
    "offline": "the file lies in an archive",
    "timeout": "no reply in time",
    "slow": "reply too slow",
    "tls": "TLS error",
    "reset": "connection closed by the server",
    "bad-response": "invalid reply",
    "address": "an address of LARM_DENY_ADDRESSES",
}


def failure_in_words(reason: str) -> str:
    """A host's reason, which ends with a kind of failure, for people.

    >>> failure_in_words("3 failures in a row: robots.txt: refused")
    '3 failures in a row: connection refused while asking for robots.txt'
    """
    before, _, kind = reason.rpartition(": ")
    words = _FAILURES.get(kind) or kind.replace("http-", "HTTP ")
    if before.endswith("robots.txt"):
        before = before.removesuffix("robots.txt").removesuffix(": ")
        words += " while asking for robots.txt"
    return f"{before}: {words}" if before else words


def trouble_of(record: HostRecord, limits: Limits) -> str:
    """Why a host gets no requests, for people; "" if it gets requests.

    >>> record = HostRecord("wiki:80", state=HostState.SNOOZED, reason="refused", failures=2)
    >>> trouble_of(record, Limits())
    'connection refused, attempt 2 of 5'
    """
    if record.state is HostState.PARKED:
        return f"parked: {failure_in_words(record.reason)}"
    if record.state is not HostState.SNOOZED:
        return ""
    words = failure_in_words(record.reason)
    return f"{words}, attempt {record.failures} of {limits.max_failures}" if words else ""


def sorted_rows(rows: Iterable[HostRow], column: str, *, reverse: bool = False) -> list[HostRow]:
    """The rows sorted by a column of HOST_COLUMNS; equal rows by name."""
    by_name = sorted(rows, key=lambda row: row.host)
    value, descending = HOST_COLUMNS[column].value, HOST_COLUMNS[column].largest_first
    return sorted(by_name, key=value, reverse=descending is not reverse)


def _row(
    reader: FrontierReader,
    name: str,
    found: tuple[bytes, Counts],
    politeness: Politeness,
    now: float,
) -> HostRow:
    data, counts = found
    record = unpack_host(data) if data else HostRecord(name)
    rule = politeness.pace_of(name)
    next_time = max(record.next_time, record.until)
    if 0 < counts.to_fetch <= counts.delayed and (first := reader.delayed(name, 1)):
        next_time = max(next_time, first[0][1])
    reason = trouble_of(record, politeness.limits).removeprefix("parked: ")
    due = max(next_time, now)
    if due < inf and (closed := rule.why_closed(due, local_hour)):
        next_time = rule.opens(due, local_hour)
        reason = f"{reason}; {closed}" if reason else closed
    if 0.0 < record.silent_since <= now - DEAD_SECS and counts.stored:
        stale = f"stale, no answer since {utc(record.silent_since)[:10]}"
        reason = f"{stale}; {reason}" if reason else stale
    views = views_in_words(reader.note(VIEWS.format(host=name)))
    reason = "; ".join([*filter(None, [reason]), *views])
    state = _STATE_WORDS[record.state]
    if politeness.overrides.is_paused(record.host):
        state, next_time, reason = PAUSED, inf, "paused by the operator"
    return HostRow(
        host=record.host,
        state=state,
        counts=counts,
        gap=politeness.gap(record),
        next_time=next_time,
        reason=reason,
        record=record,
        rule=rule,
    )


def host_rows(reader: FrontierReader, politeness: Politeness, now: float) -> Iterator[HostRow]:
    """All hosts, as of the last checkpoint, in no order; by what the operator has ordered."""
    politeness.overrides = Overrides.unpack(reader.note(NOTE))
    for name, found in reader.hosts().items():
        yield _row(reader, name, found, politeness, now)


def host_row(
    reader: FrontierReader, politeness: Politeness, host: str, now: float
) -> HostRow | None:
    """One host with the operator's orders, in the form of host_rows(); None for an unknown host."""
    politeness.overrides = Overrides.unpack(reader.note(NOTE))
    data, counts = found = reader.host(host)
    if not data and not counts.discovered:
        return None
    return _row(reader, host, found, politeness, now)


@dataclass(frozen=True, slots=True)
class Learning:
    """The settings by which a crawl learns traps and acts: LARM_TRAPS, LARM_STRATEGY,
    LARM_CLASS_PAGES."""

    mode: str = LEARN
    order: type[Strategy] = BreadthFirst
    budgets: Budgets = field(default_factory=Budgets)


def url_report(
    reader: FrontierReader,
    politeness: Politeness,
    key: bytes,
    now: float,
    *,
    learning: Learning = Learning(),
) -> list[str]:
    """Lines that say how a URL ended, or where it waits and why."""
    politeness.overrides = Overrides.unpack(reader.note(NOTE))
    state = reader.state(key)
    lines = [f"URL: {state.name.lower()}"]
    if (merged := reader.merged(key)) is not None:
        lines.append(merged_in_words(reader, merged))
    visit = reader.visit(key)
    if visit is not None:
        lines[0] += f", {visit.reason}" if visit.reason else ""
        if visit.status:
            lines.append(f"HTTP status {visit.status}, fetched {utc(visit.time)}")
        lines += again_in_words(visit, now)
        if visit.state is UrlState.STORED and visit.url:
            lines += silent_in_words(reader.host(host_of(visit.url))[0], now)
        if visit.state is UrlState.FAILED and visit.url:
            lines += broken_in_words(reader, host_of(visit.url), visit.url)
    entry, place = reader.entry(key), reader.place(key)
    if entry is None:
        return lines
    row = _row(reader, entry.host, reader.host(entry.host), politeness, now)
    if place is not None:
        before, earliest = place
        lines += broken_in_words(reader, entry.host, entry.normalized)
        if earliest >= HELD_FROM:
            return [*lines, *held_in_words(reader, entry)]
        lines.append(f"{counted(before, 'URL')} of {row.host} before it")
        if earliest > now:
            lines.append(
                f"after {entry.attempts} failed fetches, waits {earliest - now:.0f} s more"
            )
    lines.append(f"host {row.host}: {row.state}{', ' if row.reason else ''}{row.reason}")
    if state is UrlState.QUEUED:
        lines.append(_wait(row, place[0] if place else 0, now))
    return [*lines, *class_in_words(reader, entry, learning)]


def broken_in_words(reader: FrontierReader, host: str, url: str) -> Iterator[str]:
    """A line for a URL of a view that fails while its host works."""
    if note := reader.note(VIEWS.format(host=host)):
        path, mark, query = url.partition("?")
        classes = HostTraps.unpack(reader.note(TRAPS.format(host=host)), host).classes
        if words := broken_view_of(note, classes, f"{path.lower()}{mark}{query}"):
            yield words


def class_in_words(reader: FrontierReader, entry: QueuedUrl, learning: Learning) -> Iterator[str]:
    """The class of a queued URL, what its pages have shown, its budget, and what comes of that."""
    note = reader.note(TRAPS.format(host=entry.host))
    if note is None or learning.mode == OFF or entry.payload or not entry.from_page:
        return
    traps = _traps_of(reader, note, entry.host, learning.budgets)
    names = traps.names(entry.normalized, entry.depth)
    met = traps.find(entry.normalized, entry.depth)
    own, most = met.records[0], learning.budgets.of_class
    shown = _latest_in_words(names, met)
    budget = f" of the {most} that its budget allows (LARM_CLASS_PAGES)" if most else ""
    yield f"of class {names[0]}: {shown}; {own.barren} in a row with nothing new{budget}"
    if met.blocked is not None:
        what = "is held" if learning.mode == LEARN else "would be held (LARM_TRAPS=report)"
        yield f"{what} when its turn comes, as {met.blocked.in_words()}"
        return
    if learning.mode != LEARN or not learning.order.has_levels:
        return
    put, due = level_of(entry.priority), met.level
    is_put, (levels, _) = put >= due, divmod(max(put, due), STEPS)
    if levels:
        yield (
            f"{'put' if is_put else 'to be put'} behind the other URLs of {entry.host}, by"
            f" {counted(levels, 'level')} of {len(LEVELS)}, because similar pages had little new"
            " text (LARM_TRAPS)"
        )
    elif put or due:
        yield (
            f"{'put' if is_put else 'to be put'} behind URLs of {entry.host} with fewer parameters"
            " and equally new pages (LARM_TRAPS)"
        )


def _traps_of(
    reader: FrontierReader, note: bytes | None, host: str, budgets: Budgets | None = None
) -> HostTraps:
    traps = HostTraps.unpack(note, host, budgets)
    traps.seen = Bloom.unpack(reader.note(VALUES.format(host=host)))
    return traps


def _latest_in_words(names: list[str], met: Met) -> str:
    """``3 of its last 12 pages were new``: for the first group of the URL with judged pages."""
    for name, record in zip(names, met.records, strict=True):
        new, judged = record.latest
        if judged:
            of = "its last" if record is met.records[0] else "the last"
            whose = "" if record is met.records[0] else f" of {name}"
            return f"{new} of {of} {counted(judged, 'page')}{whose} new"
    return "nothing is known of its pages"


def held_in_words(reader: FrontierReader, entry: QueuedUrl) -> Iterator[str]:
    """Why a URL is held: its group, the budget and the evidence."""
    traps = _traps_of(reader, reader.note(TRAPS.format(host=entry.host)), entry.host)
    met = traps.find(entry.normalized, entry.depth)
    record = met.blocked
    if record is None:
        yield "held, and fetched when its turn comes again"
        return
    yield f"held as one of {record.text} of {entry.host}, {record.in_words()}"
    yield (
        f"{counted(record.held, 'URL')} held by this ({record.setting}); one in {PROBE} is fetched"
        " as a probe, and fewer while probes find nothing new"
    )
    for url, found_on in record.samples or ():
        yield f"{record.shown}: {url}, found on {found_on}"


def again_in_words(visit: FetchRecord, now: float) -> Iterator[str]:
    """The time of the next visit to a URL, and the reason.

    >>> [*again_in_words(FetchRecord(UrlState.STORED, due=1.8e9, a=2.0, b=1_728_000.0), 1.79e9)]
    ['next visit about 2027-01-15T08:00:00Z (estimate: changes every 10 days)']
    """
    if visit.missing_as:
        yield _missing_in_words(visit)
    if not visit.due:
        return
    if visit.due <= ASKED:
        yield "next visit with the next refresh (requested)"
    elif visit.due == CONFIRM:
        yield "next visit with the next refresh (to confirm what the last visit found)"
    elif visit.due <= SIGNALLED:
        yield "next visit with the next refresh (the site says that the page changed)"
    elif visit.state is UrlState.REFUSED:
        yield f"robots.txt is checked again about {utc(visit.due)[:19]}Z, without a request"
    elif visit.due <= PLANNED:
        yield "next visit in this run of the refresh or the next one (worth most now)"
    else:
        days = f"{visit.b / visit.a / DAY:.3g}" if visit.a else ""
        what = f"estimate: changes every {days} days"
        at = "with the next refresh, due since" if visit.due <= now else "about"
        why = what if days else "no change known yet"
        if visit.missing_as:
            why = "to confirm what the last visit found"
        yield f"next visit {at} {utc(visit.due)[:19]}Z ({why})"


def _missing_in_words(visit: FetchRecord) -> str:
    """``missing 1 time since 2026-03-01T...; the page leaves after 3 times over 2 days``."""
    seen = Observation(visit.missing_as)
    times, since = counted(visit.confirmations, "time"), utc(visit.missing_since)
    said = f"{in_words(seen)} {times} since {since}"
    rule = TABLE.get(seen)
    if rule is None or is_confirmed(visit):
        return f"{said}; the page is kept"
    days = counted(round(rule.spread / DAY), "day")
    return f"{said}; the page leaves after {counted(rule.confirmations, 'time')} over {days}"


def silent_in_words(data: bytes, now: float) -> Iterator[str]:
    """A line for a page whose host has not answered for a day, by the host's record."""
    since = unpack_host(data).silent_since if data else 0.0
    if since and now - since >= DAY:
        days = counted(int((now - since) // DAY), "day")
        yield (
            f"its host has not answered since {utc(since)[:10]}, {days}: the page stays, unless"
            f" the operator approves its removal ({program.NAME} deletes, after 7 days)"
        )


def merged_in_words(reader: FrontierReader, merged: MergedUrl) -> str:
    """``same page as http://wiki/faq.html, by the path-case rule, proven 3 times here``."""
    if not merged.rules:
        return f"fetched again, to compare {merged.entry.url} with itself"
    aliases = HostAliases.unpack(reader.note(f"aliases {merged.entry.host}"))
    page = stand_in(reader, merged)
    held = aliases.is_held(merged.entry.key, merged.rules)
    what = "held: perhaps the same page as" if held else "same page as"
    return f"{what} {page or 'a URL of another worker'}, {sentence(merged.rules, aliases)}"


def stand_in(reader: FrontierReader, merged: MergedUrl) -> str:
    """The URL that stands for a merged one; "" if another worker has it."""
    found = reader.visit(merged.into) or reader.entry(merged.into)
    return found.url if found is not None else ""


def _wait(row: HostRow, before: int, now: float) -> str:
    if row.next_time == inf:
        return "not fetched in this run"
    wait = max(0.0, row.next_time - now)
    about = wait + before * row.gap.seconds
    return (
        f"host may be asked in {wait:.0f} s, then every {row.gap.seconds:g} s ({row.gap.rule}): "
        f"about {about:.0f} s, given places"
    )
