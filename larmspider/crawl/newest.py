"""Which record of a page counts, where several workers have one: the newest that was committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from larmspider.crawl.reader import last_visit
from larmspider.workdir.manifest import CUT_BACK
from larmspider.frontier.storage.records import url_key
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import UrlState
from larmspider.index.shards import Judge
from larmspider.crawl.shard import Shard


@contextmanager
def judging(shards: Sequence[Shard], numbered: Sequence[Shard]) -> Iterator[Judge]:
    """A judge over ``shards``, which knows them by their place in ``numbered``."""
    with ExitStack() as stack:
        readers = [stack.enter_context(shard.frontier()) for shard in shards]
        places = [shards.index(shard) for shard in numbered]
        yield Newest(shards, readers, places)


class Newest(Judge):
    """``readers`` are the frontiers of ``shards``, None where one has none; ``places``: which
    shard is meant by a number."""

    def __init__(
        self,
        shards: Sequence[Shard],
        readers: Sequence[FrontierReader | None],
        places: Sequence[int],
    ) -> None:
        self._readers, self._places = readers, places
        self._prefixes = [shard.host_prefixes() for shard in shards]
        self._tails = [shard.tail() for shard in shards]
        self._cut_back = [bool(shard.description.get(CUT_BACK)) for shard in shards]

    def doubtful(self, shard: int) -> bool:
        at = self._places[shard]
        others = (found for i, found in enumerate(self._prefixes) if i != at)
        if self._tails[at] or self._cut_back[at]:
            return True
        return any(not self._prefixes[at].isdisjoint(o) for o in others)

    def counts(self, shard: int, normalized: str, fetched: float) -> bool:
        at = self._places[shard]
        if normalized in self._tails[at]:
            return False
        prefix = url_key(normalized)[:4]
        rivals = [i for i, found in enumerate(self._prefixes) if i != at and prefix in found]
        if not rivals:
            return True
        own = self._stored_at(at, normalized)
        mine = (own if own is not None else fetched, -at)
        for i in rivals:
            other = self._stored_at(i, normalized)
            if other is not None and (other, -i) > mine:
                return False
        return True

    def _stored_at(self, at: int, normalized: str) -> float | None:
        """When a shard has stored the page last; None: it has not."""
        reader = self._readers[at]
        visit = None if reader is None else last_visit(reader, normalized)
        return visit.time if visit is not None and visit.state is UrlState.STORED else None
