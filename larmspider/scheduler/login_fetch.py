"""Signs in for the scheduler, where the sites file has a form (fetch/sites/session.py).

Each step is fetched like robots.txt: by the scheduler, in its host's turn, before any page. A page
that is turned away goes back to its queue, and waits until the login was made again. If the login
fails, the host is parked, with the reason; nothing that the host shows then is stored.
robots.txt does not apply to the steps: the operator has requested them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from larmspider import stats
from larmspider.fetch.errors import SignedOut
from larmspider.fetch.sites.session import Session, Sessions, Trouble
from larmspider.formatting import counted, printable
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.part import Part
from larmspider.frontier.politeness import failure_kind
from larmspider.learned.deletes.notes import LOGIN, Notice
from larmspider.scheduler.leases import lease_of
from larmspider.scheduler.own_fetches import OwnFetches

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from larmspider.frontier.hosts import Host, Lease

logger = logging.getLogger(__name__)

MAX_BYTES = 4 * 1024 * 1024
"""The limit of a step's answer."""
SHOWN = 10
"""Hosts that the summary names."""


class LoginSteps(Part):
    """Signs in to hosts: the next step of each host's session comes before anything else."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def own_fetch(self, host: Host, now: float, allowed: Callable[[str], bool]) -> OwnFetch | None:
        session = self._of(host)
        if session is None or session.step is None or session.is_out:
            return None
        session.is_out = True
        released = session.released
        return OwnFetch(FetchKind.LOGIN, session.url, released, lambda *_: released())

    def blocks(self, host: Host) -> bool:
        session = self._of(host)
        return session is not None and session.is_out

    def _of(self, host: Host) -> Session | None:
        return self._sessions.of_url(host.record.robots_url) if self._sessions.any else None


class LoginFetch(OwnFetches):
    """Signs in to hosts, and decides which pages a host did not show because the crawl is not
    signed in."""

    meta: ClassVar[Mapping[str, Any]] = {"download_maxsize": MAX_BYTES}

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions.from_crawler(self.crawler)

    @cached_property
    def _waits(self) -> dict[str, str]:
        """Reasons, by host."""
        return {}

    def _session(self, lease: Lease) -> Session:
        session = self.sessions.of_url(lease.host.record.robots_url)
        assert session is not None  # the lease is of a login
        return session

    # steps

    def request(self, lease: Lease, url: str = "", *, secrets: bool = True) -> Request:
        """The Request for the next step of a lease."""
        step = self._session(lease).step
        assert step is not None
        headers = {"Referer": step.form_url} if step.form_url else {}  # Django asks for it
        request = super().request(lease, step.url)
        if step.body is None:
            return request.replace(headers=headers)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return request.replace(method="POST", body=step.body, headers=headers)

    async def read(self, lease: Lease, response: Response) -> None:
        kind, session = f"http-{response.status}", self._session(lease)
        if failure_kind(kind).blames_host:
            self._begin_anew(lease)
            self.end(lease, kind)
            return
        trouble = session.answered(response, self.frontier.clock())
        self.end(lease, kind)
        if trouble is not None:
            self._wait(lease.host, trouble)
        elif session.step is None:
            self._count_event("made")
            self._note(lease.host.record.host, "")
            logger.info("Signed in to %s", lease.host.record.host)

    def unanswered(self, lease: Lease, error: BaseException) -> None:
        self._begin_anew(lease)
        super().unanswered(lease, error)

    def _begin_anew(self, lease: Lease) -> None:
        self._count_event("failed")
        self._session(lease).failed()

    def _wait(self, host: Host, trouble: Trouble) -> None:
        self._count_event("refused" if trouble.until == inf else "failed")
        frontier, name = self.frontier, host.record.host
        frontier.park(host, trouble.until, trouble.reason)
        text = f"Host {name} waits: {trouble.reason}"
        self._note(name, trouble.reason)
        frontier.gate.notes.notices.append(Notice(LOGIN, name, text))

    def _note(self, host: str, reason: str) -> None:
        """Note the reason for the summary."""
        if reason or host in self._waits:
            self._waits = {**self._waits, host: reason}
            waits = [f"{host}: {reason}" for host, reason in self._waits.items() if reason]
            more = f"; {counted(len(waits) - SHOWN, 'host')} more" if len(waits) > SHOWN else ""
            counters = self.crawler.stats
            assert counters is not None
            counters.set_value(stats.LOGIN_WAITS, printable("; ".join(waits[:SHOWN]) + more))

    # pages

    def turned_away(self, request: Request, response: Response) -> bool | SignedOut:
        """Whether to fetch a page again after the next login; SignedOut for a page that is not for
        this user."""
        session, lease = self.sessions.of_url(request.url), lease_of(request)
        if session is None or lease is None or lease.proof is None:
            return False
        if not session.is_turned_away(response):
            session.was_well(request.url)
            return False
        answer = session.turned_away(request.url, lease.proof, self.frontier.clock())
        if isinstance(answer, Trouble):
            self._wait(lease.host, answer)
        elif answer is False:
            if session.is_final(response) and lease.entry and lease.entry.visit is None:
                return SignedOut("shows the login form, though signed in: not for this user")
            return False
        else:
            self.frontier.reschedule(lease.host)
        self._count_event("turned_away")
        return True

    def _count_event(self, event: str) -> None:
        self._count(stats.LOGIN.format(event=event))
