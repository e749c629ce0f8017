"""/metrics for Prometheus. No label holds a host or a URL, because there may be thousands.

Counters continue over restarts of a crawl; after a crash they fall back to the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from larmspider import __version__, stats
from larmspider.crawl.state import State
from larmspider.status.freshness import requests_by_purpose
from larmspider.status.status import Status

CONTENT_TYPE = CONTENT_TYPE_LATEST


def exposition(status: Status | None) -> bytes:
    """The text format; ``status`` is None if there is no crawl."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Crawl(status))
    return generate_latest(registry)


class _Crawl(Collector):
    def __init__(self, status: Status | None) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status
        yield _family(GaugeMetricFamily, "info", "Always 1.", "version", {__version__: 1})
        running = status is not None and status.run_state.state is State.RUNNING
        yield _gauge("running", "Whether a process runs this crawl.", running)
        if status is not None:
            yield from _of_a_crawl(status)


def _of_a_crawl(status: Status) -> Iterator[Metric]:
    gauges, totals = status.gauges, status.totals
    counters = totals.counters
    paused = gauges is not None and gauges.paused
    yield _gauge("paused", "Whether the operator has paused the crawl.", paused)
    urls = {name: number for name, number in status.urls.items() if name not in _SUMS}
    yield _family(GaugeMetricFamily, "urls", "URLs of the crawl by state.", "state", urls)
    yield _family(GaugeMetricFamily, "hosts", "Hosts by state.", "state", status.hosts)
    yield _gauge("in_flight", "URLs handed out that have no outcome yet.", status.in_flight)
    yield _gauge("resident_memory_bytes", "Memory of the crawl's process.", status.memory or 0)
    yield _gauge("disk_bytes", "Disk space of the crawl's directory.", status.disk)
    yield _gauge("disk_free_bytes", "Free disk space on that file system.", status.disk_free)
    seconds = status.forecast.seconds
    if seconds is not None:
        yield _gauge("forecast_seconds", "Seconds until the present queue is empty.", seconds)
    fresh = status.freshness
    text = "Share of the pages thought to be as stored, by the estimate of the refresh."
    yield _gauge("pages_current_ratio", text, fresh.current)
    text = "Pages chosen at random and visited again in the last 30 days."
    yield _gauge("pages_checked", text, fresh.checked)
    text = "Pages of pages_checked that were unchanged."
    yield _gauge("pages_checked_as_stored", text, fresh.as_stored)
    text = "Pages by when they are visited again."
    yield _family(GaugeMetricFamily, "pages_due", text, "when", fresh.due)
    text = "Requests of refreshes, by their purpose."
    spent = requests_by_purpose(counters)
    yield _family(CounterMetricFamily, "refresh_requests_by", text, "purpose", spent)
    text = "Visits again, by what they saw."
    yield _family(CounterMetricFamily, "refresh_visits", text, "seen", status.visits_again)
    receivers = status.outbox.items()
    for kind, name, text, values in (
        (GaugeMetricFamily, "waiting", "Pages and deletes that receivers have not taken yet.",
         {receiver: one.waiting for receiver, one in receivers}),
        (GaugeMetricFamily, "in_trouble", "Whether the receiver takes nothing now.",
         {receiver: int(bool(one.trouble)) for receiver, one in receivers}),
        (CounterMetricFamily, "sent", "Pages and deletes that receivers have taken.",
         {receiver: one.sent for receiver, one in receivers}),
        (CounterMetricFamily, "dead", "Pages and deletes that receivers have refused.",
         {receiver: one.dead for receiver, one in receivers}),
    ):  # fmt: skip
        yield _family(kind, f"outbox_{name}", text, "receiver", values)
    pages, _ = stats.pages_and_failures(counters)
    yield CounterMetricFamily("larmspider_pages", "Pages stored.", pages)
    for name, text, key in _COUNTERS:
        yield CounterMetricFamily(f"larmspider_{name}", text, counters.get(key, 0))
    text = "Links that a filter rejected."
    yield _family(CounterMetricFamily, "rejected_links", text, "filter", status.rejected)
    for name, text, label, template in _FAMILIES:
        yield _family(CounterMetricFamily, name, text, label, totals.matching(template))


_SUMS = ("discovered", "delayed")
_COUNTERS = (
    ("fetched_bytes", "Bytes of bodies, after decompression.", stats.FETCH_BYTES),
    ("links", "Links found.", stats.FOLLOW_LINKS),
    ("retries", "Fetches that were retried.", stats.RETRIES),
    ("refresh_requests", "Requests for pages that were stored before.", stats.REFRESH_REQUESTS),
    ("refresh_saved", "Known pages that a refresh did not ask for.", stats.REFRESH_NOT_ASKED),
    ("checkpoints", "Checkpoints taken.", stats.CHECKPOINTS),
)
_FAMILIES = (
    ("failed_urls", "URLs given up, by kind.", "kind", stats.RUN_FAILED),
    ("stored_urls", "URLs stored, by HTTP status.", "status", stats.RUN_STATUS),
)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"larmspider_{name}", text, float(value))


def _family(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    text: str,
    label: str,
    values: Mapping[str, int],
) -> Metric:
    family = kind(f"larmspider_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
