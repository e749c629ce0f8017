"""For machines: /metrics (Prometheus), /stats.json and /healthz."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from larmspider import stats
from larmspider.crawl.state import State
from larmspider.status.snapshot import sentence_of, state_of
from larmspider.status.status import Status
from larmspider.web.metrics import CONTENT_TYPE, exposition
from larmspider.web.request import PageView, WebRequest, WebResponse, json_reply


def metrics(ask: WebRequest) -> WebResponse:
    """Where there is no crawl, that none runs."""
    found = ask.board.status(ask.numbers) if ask.source.exists() else None
    return WebResponse(exposition(found), CONTENT_TYPE)


def stats_json(ask: WebRequest) -> WebResponse:
    if ask.source.exists():
        return json_reply(as_json(ask.board.status(ask.numbers)))
    condition = ask.source.condition
    return json_reply({"state": condition.state.value, "sentence": condition.sentence}, 404)


def healthz(ask: WebRequest) -> WebResponse:
    """200 while the server answers and nothing is broken, also before a crawl has begun; 503 for a
    crawl that breaks off, or that was killed, and for a directory that is missing or no crawl's."""
    condition, numbers = ask.source.condition, ask.numbers
    broken = numbers is not None and numbers.broken
    good = not broken and condition.state not in (State.KILLED, State.NONE)
    state = state_of(condition, numbers)
    text = json.dumps({"status": "ok" if good else "broken", "crawl": state})
    return WebResponse(text.encode() + b"\n", "application/json", 200 if good else 503)


def as_json(status: Status) -> dict[str, Any]:
    """Names as of the metrics; seconds, bytes and rates a second."""
    seconds = status.forecast.seconds
    return {
        "time": status.time,
        "state": state_of(status.condition, status.numbers),
        "sentence": sentence_of(status.condition, status.numbers),
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
        "numbers": None if status.numbers is None else status.numbers.as_json(),
    }


PAGES = (
    PageView("/metrics", metrics, live=True, without_crawl=True),
    PageView("/stats.json", stats_json, live=True, without_crawl=True),
    PageView("/healthz", healthz, live=True, without_crawl=True),
)
