"""Signs in for the scheduler, where the sites file has a form (fetch/sites/session.py).

Each step is asked as robots.txt is: by the scheduler, in its host's turn, before any page. A page
that is turned away goes back to its queue, and waits until the login was made again. Where it
cannot be made the host is parked, with the reason; nothing that the host shows then is stored.
robots.txt does not count for the steps: the operator has asked for them.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import TYPE_CHECKING, Any

from scrapy import Request

from larmspider import stats
from larmspider.fetch.errors import SignedOut, kind_of, retry_after
from larmspider.fetch.sites.session import Session, Sessions, Trouble
from larmspider.formatting import counted, printable
from larmspider.frontier.delete_gate import LOGIN, Notice
from larmspider.frontier.politeness import failure_kind
from larmspider.requests import LEASE, PROOF

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from larmspider.frontier.hosts import Host, HostRecord, Lease
    from larmspider.scheduler.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

MAX_BYTES = 4 * 1024 * 1024
"""Of a step's answer."""
SHOWN = 10
"""Hosts that the summary names."""


class LoginFetch:
    """Makes the Requests and takes the answers, for one scheduler; the frontier's ``logins``."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self.scheduler = scheduler
        self.sessions = Sessions.from_crawler(scheduler.crawler)
        self._waits: dict[str, str] = {}
        """Reasons, by host."""

    # what the frontier asks

    def take(self, record: HostRecord) -> str:
        session = self.sessions.of_url(record.robots_url)
        if session is None or session.step is None or session.is_out:
            return ""
        session.is_out = True
        return session.url

    def is_out(self, record: HostRecord) -> bool:
        session = self.sessions.of_url(record.robots_url)
        return session is not None and session.is_out

    def released(self, record: HostRecord) -> None:
        self._session(record).released()

    def _session(self, record: HostRecord) -> Session:
        session = self.sessions.of_url(record.robots_url)
        assert session is not None  # the lease is of a login
        return session

    # steps

    def request(self, lease: Lease) -> Request:
        """For the next step of a lease."""
        step = self._session(lease.host.record).step
        assert step is not None
        headers = {"Referer": step.form_url} if step.form_url else {}  # Django asks for it
        if step.body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        meta = {
            LEASE: lease,
            "download_maxsize": MAX_BYTES,
            "dont_redirect": True,
            "handle_httpstatus_all": True,
        }
        return Request(
            step.url,
            method="GET" if step.body is None else "POST",
            body=step.body,
            callback=self.answered,
            errback=self.failed,
            headers=headers,
            meta=meta,
            dont_filter=True,
        )

    async def answered(self, response: Response, **kwargs: Any) -> None:
        lease = response.meta.pop(LEASE, None)
        if lease is None:
            return
        kind, seconds = f"http-{response.status}", response.meta["download_latency"]
        frontier, record = self.scheduler.frontier, lease.host.record
        session = self._session(record)
        if failure_kind(kind).blames_host:
            wait = retry_after(response.headers.get("Retry-After"), time.time())
            self._failed(lease, kind, seconds, wait)
            return
        trouble = session.answered(response, frontier.clock())
        frontier.login_read(lease, kind, seconds)
        if trouble is not None:
            self._wait(lease.host, trouble)
        elif session.step is None:
            self._count("made")
            self._note(record.host, "")
            logger.info("Signed in to %s (proved %d times)", record.host, session.proof)
        self.scheduler.end_own(lease)

    def failed(self, failure: Failure) -> None:
        if (found := self.scheduler.failed_own(failure)) is not None:
            lease, _, error = found
            seconds = self.scheduler.frontier.clock() - lease.since
            self._failed(lease, kind_of(error), max(0.0, seconds), None)

    def _failed(self, lease: Lease, kind: str, seconds: float, wait: float | None) -> None:
        self._count("failed")
        self._session(lease.host.record).failed()
        self.scheduler.frontier.login_read(lease, kind, seconds, retry_after=wait)
        self.scheduler.end_own(lease)

    def _wait(self, host: Host, trouble: Trouble) -> None:
        self._count("refused" if trouble.until == inf else "failed")
        frontier, name = self.scheduler.frontier, host.record.host
        frontier.park(host, trouble.until, trouble.reason)
        text = f"Host {name} waits: {trouble.reason}"
        self._note(name, trouble.reason)
        frontier.gate.notices.append(Notice(LOGIN, name, text))

    def _note(self, host: str, reason: str) -> None:
        """For the summary."""
        if reason or host in self._waits:
            self._waits = {**self._waits, host: reason}
            waits = [f"{host}: {reason}" for host, reason in self._waits.items() if reason]
            more = f"; {counted(len(waits) - SHOWN, 'host')} more" if len(waits) > SHOWN else ""
            counters = self.scheduler.crawler.stats
            assert counters is not None
            counters.set_value(stats.LOGIN_WAITS, printable("; ".join(waits[:SHOWN]) + more))

    # pages

    def turned_away(self, request: Request, response: Response) -> bool | SignedOut:
        """Whether a page has to be asked again, when the login was made; SignedOut for one that is
        not for this user."""
        session = self.sessions.of_url(request.url)
        if session is None or PROOF not in request.meta:
            return False
        if not session.is_turned_away(response):
            session.was_well(request.url)
            return False
        lease = request.meta[LEASE]
        frontier = self.scheduler.frontier
        answer = session.turned_away(request.url, request.meta[PROOF], frontier.clock())
        if isinstance(answer, Trouble):
            self._wait(lease.host, answer)
        elif answer is False:
            if session.is_final(response) and lease.entry.visit is None:
                return SignedOut("shows the login form, though signed in: not for this user")
            return False
        else:
            frontier.reschedule(lease.host)
        self._count("turned_away")
        return True

    def _count(self, event: str) -> None:
        counters = self.scheduler.crawler.stats
        assert counters is not None
        counters.inc_value(stats.LOGIN.format(event=event))
