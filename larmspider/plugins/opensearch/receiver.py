"""OpenSearchReceiver: pages in an index of OpenSearch or Elasticsearch, by their _bulk API.

    LARM_OPENSEARCH_URL=https://larm:secret@search.example:9200/intranet scrapy crawl intranet ...

``intranet`` is an alias for one index, ``intranet-1``, which is created with our mapping if
missing. A document (documents.py) is a page or a document in one, as our own index has it. Its id
is the SHA-256 of its key, its version the stamp: a late version is a version conflict, and changes
nothing.

Links to a page come before and after the page. A table in the outbox has their texts (links.py). A
document is written again when its link texts have doubled, and once more at the end of the crawl.

A document has the number of its access list (rights.py). It is written again when it gets another
list; a list that changes is one row of the table beside our own index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from larmspider import options
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.index.access import Access
from larmspider.index.anchors import AnchorTable
from larmspider.index.likeness import Comparison
from larmspider.index.link_access import LinkAccess
from larmspider.index.schema import STEMMERS
from larmspider.pipelines.outbox.receiver import (
    AwayError,
    BatchError,
    Receiver,
    RefusedError,
    Sent,
)
from larmspider.pipelines.outbox.replies import (
    REPLY_BYTES,
    LongReplyError,
)
from larmspider.pipelines.outbox.spool import FOLDER, Entry, outbox_of
from larmspider.plugins.opensearch.connection import (
    BUSY,
    SETTINGS,
    Address,
    Answer,
    Connection,
    as_object,
    check_mapping,
    reason_of,
    template,
)
from larmspider.plugins.opensearch.documents import (
    STORED,
    DocumentMaker,
    document_id,
    key_of,
    page_in,
    page_of,
)
from larmspider.plugins.opensearch.links import open_links
from larmspider.plugins.opensearch.rights import SentRights, filter_for

if TYPE_CHECKING:
    from larmspider.options import Settings

BULK_BYTES = 5_000_000
"""Bytes of one request; a document may have more."""
REFRESH_LEAST, REFRESH_SHARE = 20, 20
"""Documents that are written again after a batch, as their link texts have doubled: 20, or 1 in 20
documents of the batch."""
_ROUND = 500  # documents of one catch_up(), or of one renew_access()
_READ = 32  # documents that are read together
_READ_BYTES = 64_000_000
_PARTS_OF = 200  # pages of one query; OpenSearch takes 1,024 clauses
_SCROLL = "10m"
_SHARDS_SECS = 20
"""How long the server waits for a shard that is away, before it says so."""
TIMEOUT_SECS = 60
EVERY: Mapping[str, Any] = {"match_all": {}}


_DONE, _AGAIN, _STALE, _REJECTED = range(4)
_PARTS = "parts"
"""This file says that the index may have documents of parts of pages."""


class _Action(NamedTuple):
    """A line or two of a bulk request, for an entry of this number in its batch: write this
    ``document``, or delete it."""

    number: int
    key: str
    stamp: int
    document: bytes = b""

    @property
    def kind(self) -> str:
        return "index" if self.document else "delete"

    def lines(self) -> bytes:
        # the same version again: of a batch that is repeated, or with other link texts
        about = (
            f'{{"{self.kind}":{{"_id":"{document_id(self.key)}","version":{self.stamp},'
            '"version_type":"external_gte"}}\n'
        )
        return about.encode() + (self.document + b"\n" if self.document else b"")


class _Outcome(NamedTuple):
    """The outcome of an action; _STALE: the server has a newer version."""

    kind: int
    reason: str = ""


def _judge(body: Any, actions: Sequence[_Action]) -> list[_Outcome]:
    """The outcome of each action. Raises AwayError for an answer that is not about them."""
    found: list[_Outcome] = []
    try:
        for item, action in zip(body["items"], actions, strict=True):
            ((kind, one),) = item.items()
            status, reason = one["status"], reason_of(one.get("error"))
            if (kind, one["_id"]) != (action.kind, document_id(action.key)):
                raise ValueError
            if type(status) is not int or not 200 <= status <= 599:
                raise ValueError
            if status < 300 or (status == 404 and kind == "delete" and not reason):
                outcome = _DONE
            elif status == 409:
                outcome = _STALE
            # the index is gone, and is made again; or its disk is full
            elif status in (*BUSY, 404) or "cluster_block" in reason:
                outcome = _AGAIN
            else:
                outcome = _REJECTED
            found.append(_Outcome(outcome, f"{status} {reason}"))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise AwayError("its answer does not fit the batch") from None
    return found


def _take_in(table: AnchorTable, entries: Sequence[Entry], access: LinkAccess) -> None:
    """Add the link texts that pages give, and moves. Hosts are already judged (facts.py)."""
    for entry in entries:
        key, successor = key_of(entry), entry.page.get("successor")
        if successor and access.moves(key, successor):
            table.move(key, successor)
        given = (entry.page.get("index") or {}).get("given", ())
        hidden = access.slot_of(key) is not None
        table.add(
            key, [(name, text) for name, text in given if not hidden or access.keeps(key, name)]
        )


def _links_of(outbox: Path, receiver: type[Receiver]) -> Path:
    """The folder of the link texts, and of the state of the access lists."""
    return outbox / "links" / receiver.__name__


class OpenSearchReceiver(Receiver):
    """Writes to the index, or alias, of LARM_OPENSEARCH_URL."""

    settings = (*SETTINGS, "LARM_INDEX_STEMMER")
    wants_body = False
    wants_index = True

    def __init__(self, address: Address, stemmer: str) -> None:
        self.name, self._at = address.name, address.at
        self._address = address
        self._query = ""
        self._connection: Connection | None = None
        self._stemmer = stemmer
        self._maker = DocumentMaker(stemmer)
        self._simhasher: Simhasher | None = None
        self._begun: Path | None = None
        self._rights: SentRights | None = None
        self._again = False
        """Whether versions are sent that the crawl's own sender may have sent before."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        stemmer = options.choice(settings, "LARM_INDEX_STEMMER", STEMMERS)
        return cls(Address.from_settings(settings), stemmer)

    def begin(self, spool: Path) -> None:
        outbox = outbox_of(spool)
        self._begun, self._again = _links_of(outbox, type(self)), spool != outbox
        self._rights = SentRights(outbox.parent, self._begun)

    @property
    def rights(self) -> SentRights:
        """The access lists, once begin() was called."""
        assert self._rights is not None
        return self._rights

    @property
    def _links(self) -> Path:
        """The folder of the link texts, once begin() was called."""
        assert self._begun is not None
        return self._begun

    def connect(self) -> None:
        self._open(TIMEOUT_SECS)
        index, found = self._index()
        self._check(found)
        self._query = f"?timeout={_SHARDS_SECS}s"
        if index != self.name:  # else a server makes an index of its own where ours was deleted
            self._query += "&require_alias=true"

    def _open(self, timeout: float) -> None:
        self.close()
        self._connection = Connection(self._address, timeout)

    def _index(self) -> tuple[str, Mapping[str, Any]]:
        """The name of the index behind our alias, created if missing, and its settings and
        mapping."""
        answer = self._ask("GET", f"/{self.name}")
        if answer.status == 404:
            self._make(f"{self.name}-1", {self.name: {}})
            answer = self._ask("GET", f"/{self.name}")
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise RefusedError(answer.error)
        if len(answer.body) != 1:
            raise RefusedError(
                f"{self.name} stands for {len(answer.body)} indexes: expected an alias for one"
            )
        ((index, found),) = answer.body.items()
        return index, as_object(found)

    def _make(self, index: str, aliases: Mapping[str, Any]) -> None:
        made = self._ask("PUT", f"/{index}", {**template(self._stemmer), "aliases": aliases})
        if made.status != 200 and "resource_already_exists" not in made.error:
            raise RefusedError(f"the index {index} cannot be made: {made.error}")

    def _check(self, found: Mapping[str, Any]) -> None:
        check_mapping(self.name, found, self._stemmer)

    def reindex(self) -> str:
        """Write all documents, with their versions, into a new index with the mapping of now; then
        the alias stands for that."""
        self._open(TIMEOUT_SECS)
        old, _ = self._index()
        number = re.fullmatch(rf"{re.escape(self.name)}-([0-9]+)", old)
        if number is None:
            raise RefusedError(
                f"{self.name} is not an alias for {self.name}-1 or such, but for {old}"
            )
        new = f"{self.name}-{int(number[1]) + 1}"
        self._ask("DELETE", f"/{new}")  # of a command that was killed
        self._make(new, {})
        total = 0
        for sources in self._all_stored(old):
            actions = [action for one in sources for action in self._anew(one, old)]
            for action, outcome in zip(actions, self._write(new, actions), strict=True):
                if outcome.kind != _DONE:
                    why = f"{action.key} cannot be written to {new}: {outcome.reason}"
                    raise RefusedError(why)
            total += len(actions)
        moves = [
            {"remove": {"index": old, "alias": self.name}},
            {"add": {"index": new, "alias": self.name}},
        ]
        moved = self._ask("POST", "/_aliases", {"actions": moves})
        if moved.status != 200:
            raise RefusedError(moved.error)
        return f"{self.name} is {new} now, with {total:,} documents; {old} may be deleted"

    def _anew(
        self, source: Mapping[str, Any], index: str, slot: Sequence[str] | None = None
    ) -> Iterator[_Action]:
        """Write a document again, of the same version; ``slot`` None: with the same slot."""
        try:
            page, links = page_in(source)
            stamp = int(source["stored"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RefusedError(f"{index} has a document that is not ours") from None
        slot = source.get("slot", ()) if slot is None else slot
        for key, document in self._maker.documents(page, links, stamp, slot):
            yield _Action(0, key, stamp, document)

    def _all_stored(
        self, index: str, query: Mapping[str, Any] = EVERY
    ) -> Iterator[list[Mapping[str, Any]]]:
        """The stored fields of all documents that match, some at a time."""
        self._ask("POST", f"/{index}/_refresh")
        wanted = {"size": _READ, "sort": ["_doc"], "_source": STORED, "query": query}
        answer = self._ask("POST", f"/{index}/_search?scroll={_SCROLL}", wanted, _READ_BYTES)
        while hits := self._hits(answer):
            yield [as_object(as_object(hit).get("_source")) for hit in hits]
            more = {"scroll": _SCROLL, "scroll_id": answer.body.get("_scroll_id")}
            answer = self._ask("POST", "/_search/scroll", more, _READ_BYTES)
        self._ask("DELETE", "/_search/scroll", {"scroll_id": answer.body.get("_scroll_id")})

    def _hits(self, answer: Answer) -> list[Any]:
        hits = as_object(as_object(answer.body).get("hits")).get("hits")
        if answer.status != 200 or not isinstance(hits, list):
            raise RefusedError(answer.error)
        return hits

    def send(self, batch: Sequence[Entry]) -> Sent:
        with open_links(self._links) as table:
            self.rights.follow()
            access = LinkAccess((), self.rights.table)
            if not self._again:
                _take_in(table, batch, access)
                table.flush()
            actions, copies = self._actions(batch, table)
            outcomes = self._write(self.name, actions, self._query)
            rejected: dict[int, str] = {}
            again, stale = set(), set()
            for action, outcome in zip(actions, outcomes, strict=True):
                if outcome.kind == _AGAIN:
                    again.add(action.number)
                elif outcome.kind == _STALE:
                    stale.add(action.number)
                elif outcome.kind == _REJECTED:
                    rejected[action.number] = outcome.reason
            again -= rejected.keys()
            done = [n for n in range(len(batch)) if n not in rejected.keys() | again | stale]
            if self._again:  # what is stale gives no texts
                _take_in(table, [batch[number] for number in done], access)
            table.flush({key_of(batch[number]): copies.get(number) for number in done})
            self._forget_parts([batch[number] for number in done])
            if moved := self.rights.table.changed.intersection(
                key_of(batch[number]) for number in done
            ):
                self._make_visible()
                self.rights.written(moved)
            self._refresh(table, max(REFRESH_LEAST, len(batch) // REFRESH_SHARE), due_only=True)
            self.left = table.count_changed()
        return Sent(rejected, again)

    def _actions(
        self, batch: Sequence[Entry], table: AnchorTable
    ) -> tuple[list[_Action], dict[int, int]]:
        """The actions of a batch, and the number of link texts of each page, by its number."""
        pages = {n: page for n, entry in enumerate(batch) if (page := page_of(entry)) is not None}
        if self._simhasher is None:
            self._simhasher = Simhasher()
        Comparison(pages.values(), self._simhasher.submit).settle()
        links_to = table.links_to(page.key for page in pages.values())
        links = dict(zip(pages, links_to, strict=True))
        actions: list[_Action] = []
        for number, entry in enumerate(batch):
            if number not in pages:
                actions.append(_Action(number, key_of(entry), entry.stamp))
                continue
            page = pages[number]
            if page.parts:
                (self._links / _PARTS).touch()
            slot = self.rights.terms(page.key)
            for key, document in self._maker.documents(page, links[number], entry.stamp, slot):
                actions.append(_Action(number, key, entry.stamp, document))
        return actions, {number: len(found.texts) for number, found in links.items()}

    def _write(self, index: str, actions: Sequence[_Action], query: str = "") -> list[_Outcome]:
        """The outcome of each. Raises AwayError, RefusedError, BatchError."""
        found: list[_Outcome] = []
        while len(found) < len(actions):
            body, number = bytearray(), len(found)
            while number < len(actions) and (not body or len(body) < BULK_BYTES):
                body += actions[number].lines()
                number += 1
            found += self._bulk(index, actions[len(found) : number], bytes(body), query)
        if found and all(one.kind == _AGAIN for one in found):
            raise AwayError(f"{self._at}: {found[0].reason}")
        return found

    def _bulk(
        self, index: str, actions: Sequence[_Action], body: bytes, query: str
    ) -> list[_Outcome]:
        answer = self._ask("POST", f"/{index}/_bulk{query}", body)
        if answer.status == 413:
            raise BatchError(f"413: {len(body):,} bytes are too many for it", unfit=True)
        if answer.status != 200:
            # a proxy may say 400 itself: that makes no page a dead letter
            about_it = answer.status == 400 and "error" in as_object(answer.body)
            raise (BatchError if about_it else RefusedError)(answer.error)
        return _judge(answer.body, actions)

    def _forget_parts(self, entries: Sequence[Entry]) -> None:
        """Delete the documents of parts that the last version of a page does not have."""
        if not entries or not (self._links / _PARTS).exists():
            return
        self._ask("POST", f"/{self.name}/_refresh")
        for start in range(0, len(entries), _PARTS_OF):
            older = [
                {
                    "bool": {
                        "filter": [
                            {"term": {"container": key_of(entry)}},
                            {"range": {"stored": {"lt": entry.stamp}}},
                        ]
                    }
                }
                for entry in entries[start : start + _PARTS_OF]
            ]
            query = {"query": {"bool": {"should": older, "minimum_should_match": 1}}}
            path = f"/{self.name}/_delete_by_query?conflicts=proceed"
            if (answer := self._ask("POST", path, query)).status != 200:
                raise RefusedError(answer.error)

    def behind(self) -> int:
        with open_links(self._links):
            self.rights.follow()
            return self.rights.behind

    def renew_access(self) -> None:
        with open_links(self._links) as table:
            self.rights.follow()
            names = self.rights.waiting(_ROUND)
            for name in names:
                if self.rights.table.slot_of(name) is not None:
                    table.add(name, ())  # no text of it goes to pages that others may read
            table.flush()
            for start in range(0, len(names), _PARTS_OF):
                some = names[start : start + _PARTS_OF]
                either = [{"terms": {field: some}} for field in ("key", "container")]
                self._renew({"bool": {"should": either}})
            self.rights.written(names)
            for former in self.rights.former:
                if self._renew({"term": {"slot": former}}, _ROUND) < _ROUND:
                    self.rights.forget(former)
                break
            self.left = table.count_changed()

    def _renew(self, query: Mapping[str, Any], most: int | None = None) -> int:
        """Write documents again, with their slots of now, until ``most`` are written. Returns their
        number. On return searches have them."""
        done = 0
        for sources in self._all_stored(self.name, query):
            actions = [
                action
                for source in sources
                for action in self._anew(source, self.name, self._slot_of(source))
            ]
            for action, outcome in zip(
                actions, self._write(self.name, actions, self._query), strict=True
            ):
                if outcome.kind not in (_DONE, _STALE):  # a newer version has its slot
                    raise AwayError(f"{action.key}: {outcome.reason}")
            done += len(actions)
            if most is not None and done >= most:
                break
        if done:
            self._make_visible()
        return done

    def _make_visible(self) -> None:
        """On return searches have all documents of before."""
        answer = self._ask("POST", f"/{self.name}/_refresh")
        if answer.status != 200:
            raise AwayError(f"{self._at}: {answer.error}")

    def _slot_of(self, source: Mapping[str, Any]) -> list[str]:
        page = as_object(source.get("page"))
        return self.rights.terms(str(page.get("container") or page.get("key")))

    @classmethod
    def seen_by(cls, crawls: Sequence[Path], access: Access) -> dict[str, Any]:
        return filter_for([(one, _links_of(one / FOLDER, cls)) for one in crawls], access)

    def catch_up(self) -> None:
        with open_links(self._links) as table:
            self.rights.follow()
            self._refresh(table, _ROUND, due_only=False)
            self.left = table.count_changed()

    def _refresh(self, table: AnchorTable, limit: int, *, due_only: bool) -> None:
        """Write documents again whose link texts have doubled or, unless ``due_only``, changed."""
        changed = table.changed(limit, due_only)
        for start in range(0, len(changed), _READ):
            links = dict(changed[start : start + _READ])
            written: dict[str, int | None] = dict.fromkeys(links)
            actions: list[_Action] = []
            for source in self._stored([document_id(key) for key in links]):
                page, _ = page_in(source)
                stamp = int(source["stored"])
                written[page.key] = len(links[page.key].texts)
                slot = self.rights.terms(page.key)
                made = self._maker.documents(page, links[page.key], stamp, slot)
                actions += (_Action(0, key, stamp, document) for key, document in made)
            for action, outcome in zip(
                actions, self._write(self.name, actions, self._query), strict=True
            ):
                if outcome.kind == _STALE:  # a newer version is there
                    written.pop(action.key)
                elif outcome.kind != _DONE:
                    raise AwayError(f"{action.key}: {outcome.reason}")
            table.flush(written)

    def _stored(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """The stored fields of some documents, without missing ones."""
        try:
            path = f"/{self.name}/_mget?_source_includes={','.join(STORED)}"
            answer = self._ask("POST", path, {"ids": ids}, _READ_BYTES)
        except LongReplyError:
            if len(ids) == 1:
                raise
            self._open(TIMEOUT_SECS)
            half = len(ids) // 2
            return self._stored(ids[:half]) + self._stored(ids[half:])
        documents = as_object(answer.body).get("docs")
        if answer.status != 200 or not isinstance(documents, list):
            raise RefusedError(answer.error)
        for one in map(as_object, documents):
            if one.get("found") not in (True, False):  # its shard is away: that says nothing
                raise AwayError(f"{self._at}: {reason_of(one.get('error'))}")
        return [one["_source"] for one in documents if one["found"]]

    def _ask(self, method: str, path: str, body: Any = None, limit: int = REPLY_BYTES) -> Answer:
        """Raises AwayError, RefusedError."""
        assert self._connection is not None
        return self._connection.ask(method, path, body, limit)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._simhasher is not None:
            self._simhasher.close()
            self._simhasher = None
