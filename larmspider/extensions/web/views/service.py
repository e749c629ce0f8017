"""For machines: /metrics (Prometheus), /stats.json and /healthz."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from larmspider import stats
from larmspider.condition import State
from larmspider.extensions.web.ask import Ask, Reply, json_reply
from larmspider.extensions.web.board import Status
from larmspider.extensions.web.metrics import CONTENT_TYPE, exposition
from larmspider.extensions.web.pages import Page


def metrics(ask: Ask) -> Reply:
    return Reply(exposition(ask.board.status(ask.numbers)), CONTENT_TYPE)


def stats_json(ask: Ask) -> Reply:
    return json_reply(as_json(ask.board.status(ask.numbers)))


def healthz(ask: Ask) -> Reply:
    """200 while the server answers and nothing is broken; 503 for a crawl that breaks off, or that
    was killed."""
    state = ask.source.condition.state
    broken = "" if ask.numbers is None else ask.numbers.broken
    good = not broken and state is not State.KILLED
    text = json.dumps({"status": "ok" if good else "broken", "crawl": state.value})
    return Reply(text.encode() + b"\n", "application/json", 200 if good else 503)


def as_json(status: Status) -> dict[str, Any]:
    """Names as on the overview; seconds, bytes and rates a second."""
    seconds = status.forecast.seconds
    return {
        "time": status.time,
        "state": status.condition.state.value,
        "sentence": status.condition.sentence,
        "urls": dict(status.urls),
        "pages_per_second": status.pages,
        "bytes_per_second": status.bytes,
        "hosts": dict(status.hosts),
        "refused": status.totals.matching(stats.FILTER_REJECTED),
        "failed": status.totals.matching(stats.RUN_FAILED),
        "statuses": status.totals.matching(stats.RUN_STATUS),
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
    Page("/metrics", metrics, live=True),
    Page("/stats.json", stats_json, live=True),
    Page("/healthz", healthz, live=True, without_crawl=True),
)
