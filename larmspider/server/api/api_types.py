"""Bodies and answers of /api/v1/, one class each; openapi.py describes them.

Times are seconds since 1970, 0 for none.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from larmspider.server.runs.runs import Run


class Body(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A body of a request; an unknown key is refused."""


class Answer(Struct, kw_only=True, frozen=True):
    pass


class NewCrawl(Body, frozen=True):
    """``crawl`` has the keys of the crawl file, or is its text, whose comments stay."""

    name: str
    crawl: dict[str, Any] | str


class CrawlChange(Body, frozen=True):
    """``crawl`` has the keys that change; null takes a key out. ``seen`` is the version that the
    change is based on, "" to change whatever there is now."""

    crawl: dict[str, Any]
    seen: str = ""


class Deletion(Body, frozen=True):
    """``name`` is typed once more. ``pages``: also the crawl's directory."""

    name: str
    pages: bool = False


class Start(Body, frozen=True):
    pass


class Visit(Body, frozen=True):
    """``what``: ``all`` pages, one ``url``, or all URLs that match a ``pattern``."""

    what: Literal["all", "url", "pattern"]
    value: Annotated[str, Meta(max_length=8_192)] = ""


class Look(Body, frozen=True):
    """A crawl that is not stored. ``name``: the stored crawl that the keys change."""

    crawl: dict[str, Any]
    name: str = ""


class LookPage(Answer, frozen=True):
    url: str
    status: str
    title: str


class LookLink(Answer, frozen=True):
    url: str
    reason: str


class LookAnswer(Answer, frozen=True):
    """``taken`` and ``refused``: the first links in the scope and out of it. ``taken_links`` and
    ``refused_links``: their numbers. ``cut_off``: the preview ran out of time."""

    pages: list[LookPage]
    taken: list[LookLink]
    refused: list[LookLink]
    taken_links: int
    refused_links: int
    said: str
    cut_off: bool


class ChangedKey(Answer, frozen=True):
    key: str
    before: str
    after: str


class LeavingUrls(Answer, frozen=True):
    """``leave``: the number of ``known`` URLs that would leave the scope. ``estimated``: the number
    is estimated from a part of the URLs."""

    known: int
    leave: int
    estimated: bool
    examples: list[str]


class ChangeAnswer(Answer, frozen=True):
    """``queued`` and ``pages`` (stored) are null where the scope stays as it is, or the crawl has
    not begun."""

    keys: list[ChangedKey]
    seeds_added: list[str]
    seeds_removed: list[str]
    queued: LeavingUrls | None
    pages: LeavingUrls | None


class NewToken(Body, frozen=True):
    """``user``: the user to whom the token belongs; by default the caller."""

    name: str
    scope: Literal["read", "push", "search", "edit", "operate"]
    days: Annotated[int, Meta(ge=0, le=3_650)] = 0
    user: str = ""


class NewUser(Body, frozen=True):
    name: str
    role: Literal["operator", "editor", "reader"]


class Role(Body, frozen=True):
    role: Literal["operator", "editor", "reader"]


class PushDocument(Body, frozen=True):
    """``text``, or ``file`` in base64. ``date``: ISO 8601, an HTTP date, or seconds since 1970.
    ``version``: a version that is older than the stored one is refused. Numbers are compared as
    numbers, other text as text. ``fields``: own fields of the index."""

    url: str
    title: str = ""
    text: str = ""
    file: bytes = b""
    content_type: str = ""
    date: str | float = ""
    language: str = ""
    version: int | float | str | None = None
    fields: dict[str, str | list[str]] = {}
    access: list[str] = []
    collection: str = ""


class PushAnswer(Answer, frozen=True):
    """``result``: created, updated, same (nothing to do) or refused. ``status``: the HTTP status
    that this document alone has."""

    url: str
    status: int
    result: str
    error: str = ""


class PushAnswers(Answer, frozen=True):
    """An answer for each line, in their order; ``refused`` is the number of refused ones."""

    documents: list[PushAnswer]
    refused: int


class PushedDocument(Answer, frozen=True):
    """``state``: waiting, stored, failed or leaving. ``outcome``: why a document was not read, or
    not all of it, such as "binary: image/png is not a document"."""

    collection: str
    url: str
    version: int | float | str | None
    state: str
    outcome: str
    pushed: float
    stored: float


class ProblemAnswer(Answer, frozen=True):
    key: str
    text: str
    line: int = 0


class Error(Answer, frozen=True):
    error: str
    problems: list[ProblemAnswer] = []


class Done(Answer, frozen=True):
    done: str


class CrawlAnswer(Answer, frozen=True):
    """``state``: running, running elsewhere, paused, waiting, stopping, ended, killed, new or
    broken. ``problem`` says why a crawl file cannot be used."""

    name: str
    state: str
    sentence: str
    problem: str
    schedule: str
    next_run: float
    last_run: float
    last_outcome: str
    last_said: str
    pages: int
    collection: str
    url: str


class Wait(Answer, frozen=True):
    """Something that waits for a person."""

    what: str
    message: str


class CrawlList(Answer, frozen=True):
    crawls: list[CrawlAnswer]
    queue: list[str]
    parallel: int
    disk_full: str
    waits: list[Wait]


class CrawlDetail(Answer, frozen=True):
    """``file`` is the text of the crawl file, ``version`` its hash, ``writable`` the keys that may
    be changed here, ``warnings`` are doubts about the scope,
    ``shared`` names the hosts that other crawls reach."""

    summary: CrawlAnswer
    crawl: dict[str, Any]
    file: str
    version: str
    directory: str
    writable: list[str]
    secrets: list[str]
    warnings: list[str]
    shared: list[str]


class RunAnswer(Answer, frozen=True):
    number: int
    began: float
    ended: float
    why: str
    who: str
    refresh: str
    outcome: str
    said: str

    @classmethod
    def of(cls, run: Run) -> RunAnswer:
        return cls(
            number=run.number, began=run.began, ended=run.ended, why=run.why, who=run.who,
            refresh=run.refresh, outcome=run.outcome, said=run.said,
        )  # fmt: skip


class RunList(Answer, frozen=True):
    """The newest run first."""

    runs: list[RunAnswer]


class Log(Answer, frozen=True):
    number: int
    text: str


class TokenAnswer(Answer, frozen=True):
    name: str
    scope: str
    made: float
    ends: float
    user: str = ""


class UserAnswer(Answer, frozen=True):
    name: str
    role: str
    made: float
    has_password: bool


class UserList(Answer, frozen=True):
    users: list[UserAnswer]


class MadeUser(Answer, frozen=True):
    """``password`` is shown once."""

    name: str
    password: str


class SeenHit(Answer, frozen=True):
    url: str
    title: str


class SeenAs(Answer, frozen=True):
    """The principals of a person by the ``source``, and the first hits that this person finds."""

    person: str
    role: str
    source: str
    principals: list[str]
    total: int
    hits: list[SeenHit]


class HitSection(Answer, frozen=True):
    anchor: str
    heading: str


class SearchHit(Answer, frozen=True):
    """``snippet`` is HTML: escaped text, the words of the query in <b>. ``target`` is the URL to
    open, with the section or the page of a PDF. ``type`` is the kind of the document."""

    url: str
    title: str
    score: float | None
    snippet: str
    host: str
    type: str
    mime: str
    language: str
    size: int
    fetched: float
    missing_since: float | None
    modified: float | None
    depth: int | None
    author: str
    page: int | None
    section: HitSection | None
    other_pages: list[int]
    target: str | None
    container: str | None
    copies: int
    collection: str | None
    fields: dict[str, list[str]]


class BestLink(Answer, frozen=True):
    url: str
    title: str


class BetterQuery(Answer, frozen=True):
    query: str
    total: int
    total_all: int


class SearchFacets(Answer, frozen=True):
    """Counts of all matches by value."""

    host: dict[str, int]
    other_hosts: int
    type: dict[str, int]
    language: dict[str, int]
    date: dict[str, int]
    collection: dict[str, int]
    fields: dict[str, dict[str, int]]
    unreachable: dict[str, int]
    label: dict[str, int]


class SearchAnswer(Answer, frozen=True):
    """``total`` pages match, ``total_all`` of them with all words that matter. ``instead`` is the
    query that was searched in place of one that finds next to nothing. ``offset`` hits come before
    these; ``more``: others follow. ``left_out``: why pages of an index are missing."""

    query: str
    total: int
    total_all: int
    instead: str | None
    also: list[str]
    no_filters: list[str]
    not_typed: list[str]
    left_out: list[str]
    best_bets: list[BestLink]
    offset: int
    more: bool
    seconds: float
    suggestion: BetterQuery | None
    filters: dict[str, Any]
    hits: list[SearchHit]
    facets: SearchFacets | None


class PageSection(Answer, frozen=True):
    """``anchor`` is null where no link leads to the section, ``level`` is 0 without a heading.
    ``text`` is Markdown and begins with the heading."""

    anchor: str | None
    heading: str
    level: int
    target: str | None
    text: str


class PageAnswer(Answer, frozen=True):
    """``chars`` is the length of the page, or of the requested section. ``sections`` are the text
    from ``start`` on; ``next`` is the start of the rest, null at the end. Blank lines between
    sections count 2. ``cut``: the page is longer than the text that is kept for readers."""

    url: str
    target: str | None
    title: str
    language: str
    type: str
    mime: str
    author: str
    modified: float | None
    fetched: float
    collection: str | None
    section: str | None
    start: int
    next: int | None
    chars: int
    cut: bool
    sections: list[PageSection]


class TokenList(Answer, frozen=True):
    tokens: list[TokenAnswer]


class MadeToken(Answer, frozen=True):
    """``token`` is shown once."""

    name: str
    token: str


class AuditRow(Answer, frozen=True):
    time: str
    who: str
    address: str
    act: str
    what: str
    result: str


class AuditLog(Answer, frozen=True):
    """The newest act first."""

    acts: list[AuditRow]
