"""/: state, rates, counts and forecast of the crawl, kept up to date by /events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from larmspider import stats
from larmspider.crawl.state import State
from larmspider.status.freshness import requests_by_purpose, requests_in_words
from larmspider.status.snapshot import Gauges, state_text
from larmspider.status.status import CrawlStatus, Status
from larmspider.web.render import Templates, curve
from larmspider.web.request import PageView, WebRequest, WebResponse
from larmspider.web.words import Words

ROWS = 12
"""Rows of each small table."""


def overview(request: WebRequest) -> WebResponse:
    status = request.crawl_status.status(request.gauges)
    return request.render("overview.html", now=status, **parts(status, request.say))


def update_parts(
    crawl_status: CrawlStatus,
    templates: Templates,
    gauges: Gauges | None,
    languages: Collection[str],
) -> dict[str, dict[str, dict[str, Any]]]:
    """The data of /events for each language."""
    status = crawl_status.status(gauges)
    return {language: _update(status, templates, Words(language)) for language in languages}


def _update(status: Status, templates: Templates, say: Words) -> dict[str, dict[str, Any]]:
    """Texts, curves and pieces of the page, by their names in the template."""
    shown = parts(status, say)

    def piece(name: str, *values: Any) -> str:
        return templates.macro("overview_pieces.html", name, say, *values)

    return {
        "texts": shown["texts"],
        "paths": shown["paths"],
        "series": shown["series"],
        "pieces": {
            "forecast": piece("forecast", status, shown["texts"], shown["running"]),
            "tables": piece("counts", shown["tables"], shown["empty"]),
        },
        "states": {"crawl": status.run_state.state.value},
    }


def parts(status: Status, say: Words) -> dict[str, Any]:
    """Further values of the template, from the status."""
    urls, past = status.urls, status.history
    running = status.run_state.state is State.RUNNING
    moments = [point.time for point in past.points]
    pages = curve(moments, [point.pages for point in past.points])
    sizes = curve(moments, [point.bytes for point in past.points])
    seconds = status.forecast.seconds
    known, queued = urls.get("discovered", 0), urls.get("queued", 0)
    done = max(0, known - queued - status.in_flight)
    left = [say("{n} queued", n=queued)] if queued else []
    if seconds and running and not (status.gauges and status.gauges.paused):
        left.append(say("about {time} left", time=say.duration(seconds)))
    count, rate, size = say.count, say.rate, say.size
    return {
        "texts": {
            "done": f"{100 * done / known if known else 0.0:.1f}",
            "known": say(
                "{done} of {n} known URL done: {outcomes}"
                "|{done} of {n} known URLs done: {outcomes}",
                n=known,
                done=done,
                outcomes=_outcomes(urls, say),
            ),
            "left": ", ".join(left) or say("nothing is queued"),
            "condition": say.told(state_text(status.run_state, status.gauges)),
            "pages": rate(status.pages) if running else "–",
            "bytes": size(status.bytes) if status.gauges else "–",
            "stored": count(urls.get("stored", 0)),
            "queued": count(urls.get("queued", 0)),
            "in-flight": count(status.in_flight),
            "retry": count(urls.get("delayed", 0)),
            "failed": count(urls.get("failed", 0)),
            "refused": count(urls.get("refused", 0)),
            "discovered": count(urls.get("discovered", 0)),
            "hosts": count(status.host_count),
            "memory": "–" if status.memory is None else size(status.memory),
            "disk": size(status.disk),
            "disk-free": size(status.disk_free),
            "pages-top": rate(max((point.pages for point in past.points), default=0.0)),
            "bytes-top": size(max((point.bytes for point in past.points), default=0.0)),
            "first": say.when(moments[0]) if moments else "",
            "last": say.when(moments[-1]) if moments else "",
            "runs": say("{n} run of this crawl|{n} runs of this crawl", n=max(past.runs, running)),
            "end": say("unknown") if seconds is None else say.duration(seconds),
            "end-time": say.when(status.time + seconds) if seconds and running else "",
        },
        "paths": {
            "pages-line": pages.path,
            "pages-area": pages.area,
            "bytes-line": sizes.path,
            "bytes-area": sizes.area,
        },
        "series": {
            "pages": _series(moments, [point.pages for point in past.points]),
            "bytes": _series(moments, [point.bytes for point in past.points]),
        },
        "tables": {
            "Hosts by state": status.hosts,
            **({"URLs that wait for a login by host": status.logins} if status.logins else {}),
            "URLs stored by HTTP status": _first(status_of(status, stats.RUN_STATUS)),
            "Retries by kind": _first(status_of(status, stats.RETRIES_KIND)),
            "URLs failed by kind": _first(status_of(status, stats.RUN_FAILED)),
            "Links rejected by filter": _first(status.rejected),
            **_refresh_tables(status),
            **_outbox_tables(status),
        },
        "empty": "None as of the last checkpoint." if running else "None.",
        "running": running,
        "requests": status.totals.counters.get(stats.REFRESH_REQUESTS, 0),
        "spent": requests_in_words(requests_by_purpose(status.totals.counters)),
        "saved": status.totals.counters.get(stats.REFRESH_NOT_ASKED, 0),
    }


def _outcomes(urls: Mapping[str, int], say: Words) -> str:
    """The known URLs that are done, by outcome: the numbers add up."""
    counts = [urls.get(state, 0) for state in ("stored", "failed", "refused", "merged")]
    stored, failed, refused, merged = counts
    texts = (
        say("{n} stored|{n} stored", n=stored),
        say("{n} failed|{n} failed", n=failed),
        say("{n} refused|{n} refused", n=refused),
        say("{n} duplicate|{n} duplicates", n=merged),
    )
    shown = [text for text, n in zip(texts, counts, strict=True) if n] or texts[:1]
    return ", ".join(text.replace(" ", "\u00a0") for text in shown)  # no line ends between


def _series(moments: Sequence[float], values: Sequence[float]) -> list[list[float]]:
    """Times and values of a curve, for uPlot."""
    return [[round(at, 1) for at in moments], [round(value, 2) for value in values]]


def _refresh_tables(status: Status) -> dict[str, dict[str, int]]:
    """Tables of the refresh; empty for a crawl without a page that was visited again."""
    if not status.freshness.is_known:
        return {}
    return {
        "Visits again by what was seen": status.visits_again,
        "Pages due by when": dict(status.freshness.due),
    }


def _outbox_tables(status: Status) -> dict[str, dict[str, int]]:
    """The tables of receivers; None for a crawl without receivers."""
    if not status.outbox:
        return {}
    waiting = {
        f"{name} ({one.trouble})" if one.trouble else name: one.waiting
        for name, one in status.outbox.items()
    }
    return {
        "Waiting in the outbox by receiver": waiting,
        "Sent by receiver": {name: one.sent for name, one in status.outbox.items()},
        "Dead letters by receiver": {n: one.dead for n, one in status.outbox.items() if one.dead},
    }


def status_of(status: Status, template: str) -> dict[str, int]:
    return status.totals.matching(template)


def _first(counts: dict[str, int]) -> dict[str, int]:
    """The largest counts, and the sum of the others."""
    names = list(counts)
    if len(names) <= ROWS:
        return counts
    shown = {name: counts[name] for name in names[: ROWS - 1]}
    return shown | {"others": sum(counts[name] for name in names[ROWS - 1 :])}


PAGES = (PageView("/", overview, "Overview", live=True),)
