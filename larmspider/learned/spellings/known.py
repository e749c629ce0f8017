"""The merge rules proved on each host, and its merged URLs, for the Merger and the Trials.

    known.hosts.of("wiki:80").decide(PATH_CASE, sample=False)      # MERGE if it is proved there
    known.needed("wiki:80", "http://wiki/FAQ", "http://wiki/faq")  # PATH_CASE
    known.queue_again([key])                                       # merged URLs become queued

The value of a host is its note ``aliases wiki:80``, which moves with its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from larmspider.frontier.part import HostNotes
from larmspider.frontier.storage.records import FetchRecord
from larmspider.learned.spellings.aliases import MAX_GONE, PROOFS, HostAliases
from larmspider.urls.equivalence import SESSION_ID
from larmspider.urls.session_ids import without

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier
    from larmspider.urls.normalizer import UrlForms

SLICE = 500
"""Merged URLs that are queued again at a time: 10 ms."""
MAX_STAND_INS = 65_536
"""URLs in memory whose page has another URL."""


class Spellings:
    """``proofs``: the number of equal pairs that prove a rule on a host."""

    def __init__(self, frontier: Frontier, forms: UrlForms, proofs: int = PROOFS) -> None:
        self._frontier, self._forms, self._proofs = frontier, forms, proofs
        self.hosts = HostNotes(frontier.notes, "aliases", HostAliases, prepare=self._prepare)
        self.undone = 0
        """Merged URLs that were queued again since the last checkpoint."""
        self.holding: set[str] = set()
        """Hosts that have held URLs, or had some lately."""
        self.undoing: set[str] = set()
        """Hosts with a rule whose merged URLs are queued again."""
        self.stand_ins: dict[str, str] = {}
        """Exact forms of merged URLs met lately, and of the URLs that stand for them."""

    def _prepare(self, host: str, aliases: HostAliases) -> None:
        aliases.proofs = self._proofs
        if aliases.held:
            self.holding.add(host)
        if aliases.undo:
            self.undoing.add(host)

    def forget(self, host: str) -> None:
        """Another worker took over the host."""
        self.hosts.forget(host)
        self.holding.discard(host)
        self.undoing.discard(host)

    def needed(self, host: str, one: str, other: str) -> int | None:
        """The rules by which two URLs of a host may be one page (UrlForms.needed)."""
        found, names = self._forms.needed(one, other), self.hosts.of(host).sessions
        if found is not None or not names:
            return found
        bare = [without(url, names) for url in (one, other)]
        found = self._forms.needed(*bare)
        return None if found is None else found | SESSION_ID

    def first(self, host: str, key: bytes) -> FetchRecord | None:
        """The record of a URL into which others may be merged."""
        visit = self._frontier.backend.visit(key)
        is_gone = visit is None or not visit.stands or key in self.hosts.of(host).gone
        return None if is_gone else visit

    def url_of(self, key: bytes) -> str:
        backend = self._frontier.backend
        if (merged := backend.merged(key)) is not None:
            return merged.entry.url
        found = backend.entry(key) or backend.visit(key)
        return found.url if found is not None else ""

    def note_gone(self, host: str, key: bytes) -> None:
        """Note that a URL which gave a 200 gave another status when it was fetched again."""
        aliases = self.hosts.of(host)
        if key not in aliases.gone:
            aliases.gone = [*aliases.gone, key][-MAX_GONE:]
            self.hosts.touch(host)
        self.queue_merged_into(host, key)

    def queue_merged_into(self, host: str, key: bytes) -> None:
        if self._frontier.backend.counts(host).merged:
            while found := self._frontier.backend.merged_into(key, SLICE):
                self.queue_again(found)

    def queue_again(self, keys: Sequence[bytes]) -> None:
        """Merged URLs become queued."""
        backend = self._frontier.backend
        merged = {key: found.rules for key in keys if (found := backend.merged(key))}
        hosts: dict[str, None] = {}
        for entry in backend.unmerge(keys):
            self.hosts.of(entry.host).count(merged[entry.key], -1)
            self.hosts.of(entry.host).equal.pop(entry.key, None)
            self.stand_ins.pop(self._forms(entry.url).exact, None)
            self.hosts.touch(entry.host)
            self.undone += 1
            hosts[entry.host] = None
        self.reschedule(hosts)

    def reschedule(self, hosts: Iterable[str]) -> None:
        for name in hosts:
            if (host := self._frontier.hosts.get(name)) is not None:
                self._frontier.reschedule(host)

    def remember(self, exact: str, url: str) -> None:
        if len(self.stand_ins) >= MAX_STAND_INS:
            self.stand_ins.clear()
            self._frontier.seen.clear()  # so that met() is called again for each
        if exact:
            self.stand_ins[exact] = self._forms(url).exact
