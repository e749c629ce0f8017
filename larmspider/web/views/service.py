"""Pages for machines: /metrics (Prometheus), /stats.json and /healthz."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from larmspider import stats
from larmspider.crawl.state import State
from larmspider.status.freshness import requests_by_purpose
from larmspider.status.snapshot import Gauges, state_of, state_text
from larmspider.status.status import Status
from larmspider.web.metrics import CONTENT_TYPE, exposition
from larmspider.web.request import PageView, WebRequest, WebResponse, json_response

HEALTH = "/healthz"


def metrics(request: WebRequest) -> WebResponse:
    found = request.crawl_status.status(request.gauges) if request.source.exists() else None
    return WebResponse(exposition(found), CONTENT_TYPE)


def stats_json(request: WebRequest) -> WebResponse:
    if request.source.exists():
        return json_response(as_json(request.crawl_status.status(request.gauges)))
    run_state = request.source.run_state
    sentence = run_state.sentence
    if not request.signed_in:
        sentence = request.source.without_paths(sentence)
    return json_response({"state": run_state.state.value, "sentence": sentence}, 404)


def healthz(request: WebRequest) -> WebResponse:
    """200 while nothing is wrong, also before a crawl has begun; 503 for a crawl that stops because
    of an error or was killed, and for a directory that is missing or not a crawl's."""
    run_state, gauges = request.source.run_state, request.gauges
    broken = gauges is not None and gauges.broken
    good = not broken and run_state.state not in (State.KILLED, State.NONE)
    state = state_of(run_state, gauges)
    text = json.dumps({"status": "ok" if good else "broken", "crawl": state})
    return WebResponse(text.encode() + b"\n", "application/json", 200 if good else 503)


def as_json(status: Status) -> dict[str, Any]:
    """The body of /stats.json: names as in /metrics; times in seconds, rates a second."""
    seconds, fresh = status.forecast.seconds, status.freshness
    return {
        "time": status.time,
        "state": state_of(status.run_state, status.gauges),
        "sentence": state_text(status.run_state, status.gauges),
        "urls": dict(status.urls),
        "pages_per_second": status.pages,
        "bytes_per_second": status.bytes,
        "hosts": dict(status.hosts),
        "rejected_links": status.rejected,
        "failed_urls": status.totals.matching(stats.RUN_FAILED),
        "stored_urls": status.totals.matching(stats.RUN_STATUS),
        "runs": status.history.runs,
        "disk": status.disk,
        "disk_free": status.disk_free,
        "memory": status.memory,
        "forecast": {
            "seconds": seconds if seconds is not None and isfinite(seconds) else None,
            "reasons": status.forecast.reasons,
            "last": [[one.host, one.queued, one.seconds] for one in status.forecast.slowest],
        },
        "refresh": {
            "current": fresh.current if fresh.is_known else None,
            "looked_at": fresh.looked_at,
            "checked": fresh.checked,
            "checked_as_stored": fresh.as_stored,
            "missing": fresh.missing,
            "due": dict(fresh.due),
            "changes_a_day": dict(fresh.changes),
            "seen": status.visits_again,
            "requests": status.totals.counters.get(stats.REFRESH_REQUESTS, 0),
            "requests_by_purpose": requests_by_purpose(status.totals.counters),
            "saved": status.totals.counters.get(stats.REFRESH_NOT_ASKED, 0),
        },
        "outbox": {name: one._asdict() for name, one in status.outbox.items()},
        "numbers": None if status.gauges is None else _numbers(status, status.gauges),
    }


def _numbers(status: Status, gauges: Gauges) -> dict[str, Any]:
    """The gauges, with the counts of URLs that all pages show."""
    return gauges.as_json() | {"urls": dict(status.urls), "in_flight": status.in_flight}


PAGES = (
    PageView("/metrics", metrics, live=True, without_crawl=True),
    PageView("/stats.json", stats_json, live=True, without_crawl=True),
    PageView(HEALTH, healthz, live=True, without_crawl=True),
)
