"""A site with a frontier that merges, in process: fetched, stored and merged URLs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha1
from typing import Any

from larmspider.extraction.texts.fingerprint import Details, fingerprint
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState, url_key
from larmspider.items import REDIRECT, Page
from larmspider.learned.learning import Learning, LearningFrontier
from larmspider.learned.spellings.aliases import PROOFS
from larmspider.learned.spellings.trials import Arrival
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import Clock, build

WORDS = "Some words as pages have them, so that their text is what counts, and no link or markup. "


@dataclass
class Answer:
    body: str = ""
    status: int = 200
    links: tuple[str, ...] = ()
    location: str = ""


Handler = Callable[[str], Answer]


class Site:
    """A host and a crawl of it. ``stored`` and ``fetched`` are targets, in order."""

    def __init__(self, handler: Handler, open_backend: Callable[[], Backend] | None = None) -> None:
        self.handler = handler
        self.disk, self.clock = Disk(), Clock()
        self.open_backend = open_backend or (lambda: MemoryBackend(self.disk))
        self.fetched: list[str] = []
        self.stored: list[str] = []
        self.frontier: LearningFrontier
        self.start()

    def start(self) -> None:
        """Also after a crash."""
        backend: Any = self.open_backend()
        self.forms = UrlForms(Canonicalizer(), HostResolver())
        learning = Learning(self.forms, PROOFS)
        self.frontier = build(backend, self.clock, robots=False, delay=0.0, learning=learning)
        self.merger = self.frontier.merger

    def add(self, *targets: str, found_on: str = "", type_: int = 0) -> None:
        entries = []
        for target in targets:
            normalized, exact = self.forms(f"http://h{target}")
            if self.frontier.known([exact])[0]:
                continue
            entries.append(
                self.frontier.entry(
                    f"http://h{target}", normalized, exact=exact, link_type=type_,
                    from_page=f"http://h{found_on}",
                )
            )  # fmt: skip
        self.frontier.add(entries)

    def step(self) -> bool:
        """One fetch; False: there is nothing to do now."""
        lease = self.frontier.pop()
        self.frontier.audit(deep=True)
        if lease is None:
            at = self.frontier.next_ready_time()
            if at is None or at <= self.clock.now:
                return False
            self.clock.now = at
            return True
        target = lease.url.removeprefix("http://h")
        answer = self.handler(target)
        self.fetched.append(target)
        page = Page(lease.url, text=answer.body and WORDS * 3 + answer.body, status=answer.status)
        page.body = page.text.encode()
        leads_to = self.forms(f"http://h{answer.location}").exact if answer.location else ""
        if answer.location:
            self.add(answer.location, found_on=target, type_=REDIRECT)
        self.add(*answer.links, found_on=target)
        digest = sha1(page.body, usedforsecurity=False).digest()
        assert lease.entry is not None
        digest += fingerprint(page, self.merger.changing(lease.entry.host))
        self.merger.trials.recent.put(lease.entry.key, page)
        copy = self.merger.trials.arrived(
            lease.entry.host,
            lease.entry.key,
            Arrival(answer.status, digest, partial(Details.of, page), leads_to),
        )
        self.frontier.answered(lease, 0.01)
        if copy is not None:
            self.frontier.merge(lease, copy.merged)
        else:
            visit = FetchRecord(
                UrlState.STORED, self.clock.now, status=answer.status, digest=digest
            )
            self.frontier.acknowledge(lease, visit)
            self.stored.append(target)
        return True

    def run(self) -> None:
        while self.step():
            pass
        assert self.frontier.finished
        counts = self.counts
        assert counts.queued == counts.leased == 0

    @property
    def counts(self) -> Counts:
        return self.frontier.audit(deep=True)

    @property
    def rules(self) -> list[str]:
        return list(self.merger.of("h:80").in_words())

    def state(self, target: str) -> UrlState:
        return self.frontier.backend.check([url_key(self.forms(f"http://h{target}").exact)])[0]


def twins(number: int) -> list[str]:
    """``number`` pages, each in two spellings."""
    return [name for n in range(number) for name in (f"/Page{n}", f"/page{n}")]
