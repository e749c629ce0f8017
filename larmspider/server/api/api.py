"""/api/v1/: every act on crawls, runs and tokens. OPERATIONS is the table of all.

    for operation in OPERATIONS: ...       # routes (add_routes), openapi.py, larmspider ctl

A script sends ``Authorization: Bearer TOKEN``; a browser its session and the header X-CSRF-Token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from larmspider import stats
from larmspider.crawl.state import RunState, State
from larmspider.errors import ConfigError, HttpError, LarmspiderError
from larmspider.files import is_locked
from larmspider.formatting import utc
from larmspider.learned.deletes.notes import Notice
from larmspider.server.api import api_types as types
from larmspider.server.api import search as api_search
from larmspider.server.api.crawls import By, Crawls, version_of
from larmspider.server.api.push import (
    FILE_QUERY,
    LINES,
    Collection,
    Pushes,
    answers_of,
    document_in,
    document_of_query,
    documents_in,
    is_lines,
)
from larmspider.server.api.rate import Rate
from larmspider.server.config.crawl_file import CrawlFileError, Problem
from larmspider.server.config.crawl_schema import WRITABLE
from larmspider.server.config.scope_check import scope_warnings
from larmspider.server.config.secrets import Secrets
from larmspider.server.home import CrawlEntry
from larmspider.server.people import people_acts
from larmspider.server.people.people import ServerPeople
from larmspider.server.people.people_acts import Subject
from larmspider.server.people.tokens import TokenStore
from larmspider.server.runs.look import Looks
from larmspider.server.runs.manager import Manager
from larmspider.server.runs.runs import STOPPED, tail_of
from larmspider.server.runs.watch import Watch
from larmspider.status.totals import TOTALS_FILE, Totals
from larmspider.web.auth import EDIT, OPERATE, PUSH, READ, SEARCH, Identity
from larmspider.web.reader import MAX_NAME, Reader
from larmspider.web.request import WebRequest
from larmspider.web.site import SITE, address_of, may_search, proof_of
from larmspider.web.tries import network_of, tried_too_often
from larmspider.workdir.manifest import LOCK, MANIFEST

BASE = "/api/v1"
MAX_LOG_BYTES = 1_000_000
JSON = "application/json"
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Server:
    """All that the operations work on."""

    crawls: Crawls
    tokens: TokenStore
    secrets: Secrets
    looks: Looks
    people: ServerPeople
    pushes: Pushes
    watch: Watch | None = None
    opened: Callable[[], Awaitable[str]] | None = None
    """Called once the first token is made; returns the address to which it led, or ""."""
    ports: list[int] = field(default_factory=list)
    """Ports of this server, to which a preview sends no request."""
    searches: Rate = field(default_factory=Rate)

    @property
    def waits(self) -> list[Notice]:
        """Notices of the last Watch.look(), as the first page lists them."""
        return [] if self.watch is None else list(self.watch.waits.values())

    @property
    def manager(self) -> Manager:
        return self.crawls.manager


class Ask(Protocol):
    """Answers a request with a function over the search of all crawls, in a thread."""

    def __call__(
        self, request: web.Request, answer: Callable[[WebRequest], Found]
    ) -> Awaitable[Found]: ...


SearchAs = Callable[[web.Request, Reader, str], Awaitable[dict[str, Any]]]
"""The JSON of the search page, as another person sees it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request: the server, the caller, the parameters of the path and the query. ``search``
    searches as another person."""

    server: Server
    by: By
    path: dict[str, str]
    query: dict[str, str]
    body: Any = None
    search: Callable[[Reader, str], Awaitable[dict[str, Any]]] | None = None
    request: web.Request | None = None
    """The request, for operations that read its body themselves."""
    ask: Ask | None = None

    @property
    def name(self) -> str:
        return self.path["name"]


@dataclass(frozen=True, slots=True)
class Operation:
    """``answer`` is the class of the answer; ``body`` is the class of the body, None for none.
    ``kinds``: types of a body that ``run`` reads itself. ``lines``: the class of the answer to a
    body of several documents. ``query``: names in the query."""

    method: str
    path: str
    text: str
    run: Callable[[Call], Awaitable[Struct]]
    answer: type[Struct]
    body: type[Struct] | None = None
    scope: str = OPERATE
    status: int = 200
    kinds: tuple[str, ...] = ()
    lines: type[Struct] | None = None
    query: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The operationId, and the word of larmspider ctl."""
        return self.run.__name__.replace("_", "-")


def summary_of(manager: Manager, entry: CrawlEntry) -> types.CrawlAnswer:
    """The row of a crawl in lists."""
    state = manager.state_of(entry.name)
    directory = manager.directory_of(entry)
    run_state, totals = _facts(manager, entry, directory)
    standing, sentence = _standing(manager, entry, run_state, totals)
    counters = totals.counters
    last = state.runs[-1] if state.runs else None
    crawl = entry.crawl
    return types.CrawlAnswer(
        name=entry.name,
        state=standing,
        sentence=sentence,
        problem=entry.problem,
        schedule="" if crawl is None else crawl.schedule.run,
        next_run=manager.next_run(entry) or 0.0,
        last_run=last.began if last else 0.0,
        last_outcome=last.outcome if last else "",
        last_said=last.said if last else "",
        pages=stats.pages_and_failures(counters)[0],
        collection=(crawl.collection if crawl else "") or entry.name,
        url=f"/crawls/{entry.name}/",
    )


def _standing(
    manager: Manager, entry: CrawlEntry, on_disk: RunState, totals: Totals
) -> tuple[str, str]:
    """The state of a crawl, and a sentence about it."""
    state, crawl = manager.state_of(entry.name), entry.crawl
    sentence = on_disk.sentence if on_disk.state is not State.NONE else "Not begun yet."
    nodes = crawl.run.nodes if crawl is not None else []
    if nodes:
        sentence = f"It runs on {', '.join(nodes)}: the pages are there."
    if entry.name in manager.running:
        if state.held and on_disk.state is State.RUNNING:
            return "stopping", "It stops once its fetches in flight have ended."
        if state.paused_for_disk:
            return "paused", f"Paused. {manager.disk_full}"
        if totals.paused:
            return "paused", f"Paused. {sentence}"
        if nodes or on_disk.state is State.RUNNING:
            return "running", sentence
        began = utc(state.run.began) if state.run is not None else ""
        if on_disk.state is State.ENDED and on_disk.ended >= began:
            return "stopping", sentence
        return "running", "It starts."
    if crawl is None:
        return "broken", sentence
    if state.queued:
        return "waiting", manager.why_waiting(entry)
    if on_disk.state is State.RUNNING:
        return "running elsewhere", sentence
    if state.runs and state.runs[-1].outcome == STOPPED:
        return "ended", sentence
    if state.runs and nodes:
        return "killed" if state.runs[-1].outcome == "killed" else "ended", sentence
    if on_disk.state is State.KILLED:
        following = "Start continues it from its last checkpoint."
        if state.retry_at and not state.held:
            following = f"The server continues it at {utc(state.retry_at)[:19]}Z."
        return "killed", f"It was killed; it began at {on_disk.began}. {following}"
    return {State.ENDED: "ended"}.get(on_disk.state, "new"), sentence


def _facts(manager: Manager, entry: CrawlEntry, directory: Path) -> tuple[RunState, Totals]:
    """The state and the counts of a crawl's directory, read again where its files have changed:
    0.2 ms a crawl."""
    if entry.crawl is not None and entry.crawl.run.workers > 1:
        return RunState.of(directory), Totals.of_crawl(directory)
    files = (directory / MANIFEST, directory / TOTALS_FILE)
    seen = directory, *map(_stamp, files), is_locked(directory / LOCK)
    known = manager.facts.get(entry.name)
    if known is None or known[0] != seen:
        facts = RunState.of(directory), Totals.read(directory)
        known = manager.facts[entry.name] = seen, facts
    return known[1]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


async def crawls(call: Call) -> types.CrawlList:
    manager = call.server.manager

    def read() -> types.CrawlList:
        entries = manager.entries().values()
        return types.CrawlList(
            crawls=[summary_of(manager, entry) for entry in entries],
            queue=manager.queue,
            parallel=manager.settings.at_once,
            disk_full=manager.disk_full,
            waits=[types.Wait(what=one.what, message=one.message) for one in call.server.waits],
        )

    return await asyncio.to_thread(read)


async def crawl(call: Call) -> types.CrawlDetail:
    manager, name = call.server.manager, call.name
    entry = manager.entries().get(name)
    if entry is None:
        raise HttpError(f"There is no crawl {name[:64]!r}.", 404)
    try:
        text = manager.home.text_of(name)
    except ConfigError:
        text = ""
    values = msgspec.to_builtins(entry.crawl) if entry.crawl is not None else {}
    operates = call.by.scope == OPERATE
    if not operates:  # settings may hold what an editor is not to see
        values = {key: value for key, value in values.items() if key in WRITABLE}
    return types.CrawlDetail(
        summary=summary_of(manager, entry),
        crawl=values,
        file=text if operates else "",
        version=version_of(text),
        directory=str(manager.directory_of(entry)) if operates else "",
        writable=sorted(WRITABLE),
        secrets=call.server.secrets.names() if operates else [],
        warnings=scope_warnings(entry.crawl) if entry.crawl is not None else [],
        shared=call.server.crawls.shared(entry.crawl, name) if entry.crawl is not None else [],
    )


async def create(call: Call) -> types.CrawlDetail:
    body: types.NewCrawl = call.body
    call.server.crawls.create(body.name, body.crawl, call.by)
    return await crawl(Call(call.server, call.by, {"name": body.name}, {}))


async def change(call: Call) -> types.CrawlDetail:
    body: types.CrawlChange = call.body
    call.server.crawls.change(call.name, body.crawl, body.seen, call.by)
    return await crawl(call)


async def delete(call: Call) -> types.Done:
    body: types.Deletion = call.body
    acts = call.server.crawls
    done = await asyncio.to_thread(acts.delete, call.name, body.name, call.by, pages=body.pages)
    return types.Done(done=done)


async def start(call: Call) -> types.Done:
    return types.Done(done=call.server.crawls.start(call.name, call.by))


async def stop(call: Call) -> types.Done:
    return types.Done(done=call.server.crawls.stop(call.name, call.by))


async def pause(call: Call) -> types.Done:
    return types.Done(done=await call.server.crawls.tell(call.name, "pause", call.by))


async def resume(call: Call) -> types.Done:
    return types.Done(done=await call.server.crawls.tell(call.name, "resume", call.by))


async def visit(call: Call) -> types.Done:
    body: types.Visit = call.body
    done = call.server.crawls.visit(call.name, body.what, body.value, call.by)
    return types.Done(done=done)


async def preview(call: Call) -> types.LookAnswer:
    body: types.Look = call.body
    acts = call.server.crawls
    kept = acts.check(body.crawl, body.name)
    _note(call, "preview", " ".join(kept.seeds), "begun")
    return await call.server.looks.at(kept, call.server.ports)


async def preview_change(call: Call) -> types.ChangeAnswer:
    body: types.CrawlChange = call.body
    return await asyncio.to_thread(call.server.crawls.changes, call.name, body.crawl)


async def runs(call: Call) -> types.RunList:
    await crawl(call)
    state = call.server.manager.state_of(call.name)
    found = [*state.runs, *([state.run] if state.run else [])]
    return types.RunList(runs=[types.RunAnswer.of(run) for run in reversed(found)])


async def log(call: Call) -> types.Log:
    await crawl(call)
    text = call.path["number"]
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    most = call.query.get("bytes", "65536")
    wanted = int(most) if most.isascii() and most.isdecimal() and len(most) < 10 else 65_536
    folder = call.server.manager.home.runs_of(call.name)
    try:
        tail = await asyncio.to_thread(tail_of, folder, number, min(wanted, MAX_LOG_BYTES))
    except OSError:
        raise HttpError(f"Run {text[:20]!r} has no log (any more).", 404) from None
    return types.Log(number=number, text=tail)


async def push(call: Call) -> types.PushAnswer | types.PushAnswers:
    """A document, or one a line."""
    assert call.request is not None
    lines = is_lines(call.request)
    async with call.server.pushes.body(call.request, call.by.who) as body:
        if lines:
            found = await asyncio.to_thread(documents_in, body)
            return answers_of(await _pushed(call, call.query.get("collection", ""), found))
        one = document_in(body)
        return await _pushed_one(call, one)


async def push_file(call: Call) -> types.PushAnswer:
    """A document whose file is the body."""
    assert call.request is not None
    kind = call.request.headers.get("Content-Type", "")
    async with call.server.pushes.body(call.request, call.by.who) as body:
        return await _pushed_one(call, document_of_query(call.query, body, kind))


async def _pushed_one(call: Call, one: types.PushDocument) -> types.PushAnswer:
    name = call.query.get("collection", "") or one.collection
    found = (await _pushed(call, name, [one]))[0]
    if found.error:
        raise HttpError(found.error, found.status)
    return found


async def _pushed(
    call: Call, name: str, found: Sequence[types.PushDocument | HttpError]
) -> list[types.PushAnswer]:
    pushes = call.server.pushes
    return await asyncio.to_thread(lambda: pushes.push(pushes.collection(name), found, call.by))


def _collections(call: Call) -> list[Collection]:
    """The collection that the query names, else all."""
    pushes, name = call.server.pushes, call.query.get("collection", "")
    return [pushes.collection(name)] if name else pushes.all()


async def unpush(call: Call) -> types.Done:
    def remove() -> list[str]:
        return call.server.pushes.remove(_collections(call), call.query.get("url", ""), call.by)

    return types.Done(done=f"the document leaves {', '.join(await asyncio.to_thread(remove))}")


async def pushed(call: Call) -> types.PushedDocument:
    def read() -> types.PushedDocument:
        name, found = call.server.pushes.state(_collections(call), call.query.get("url", ""))
        return types.PushedDocument(collection=name, **found._asdict())

    return await asyncio.to_thread(read)


async def search(call: Call) -> types.SearchAnswer:
    return await _searched(call, api_search.search)


async def page(call: Call) -> types.PageAnswer:
    return await _searched(call, api_search.page)


async def _searched(call: Call, answer: Callable[[WebRequest], Found]) -> Found:
    """The answer, unless this token or address has sent too many requests."""
    assert call.request is not None
    assert call.ask is not None
    who = sender_of(proof_of(call.request).identity, call.by.address)
    call.server.searches.check(who)
    call.server.searches.took(who)
    return await call.ask(call.request, answer)


def sender_of(identity: Identity | None, address: str) -> str:
    """The name under which searches are counted: of a token, a person or a network. People of one
    provider have one mark."""
    if identity is None:
        return f"address:{network_of(address)}"
    return identity.mark if identity.mark.startswith("token:") else f"person:{identity.name}"


async def tokens(call: Call) -> types.TokenList:
    found = [
        types.TokenAnswer(
            name=one.name, scope=one.scope, made=one.made, ends=one.ends, user=one.user
        )
        for one in call.server.tokens.all()
    ]
    return types.TokenList(tokens=found)


async def make_token(call: Call) -> types.MadeToken:
    body: types.NewToken = call.body
    user = body.user
    if not user and call.server.people.users.find(call.by.who) is not None:
        user = call.by.who
    token = call.server.tokens.make(body.name, body.scope, body.days, user)
    _note(call, "make token", f"{body.name} ({body.scope}){f' of {user}' if user else ''}")
    return types.MadeToken(name=body.name, token=token)


async def remove_token(call: Call) -> types.Done:
    call.server.tokens.remove(call.name)
    _note(call, "remove token", call.name)
    return types.Done(done=f"token {call.name} is not a token any more")


async def users(call: Call) -> types.UserList:
    return types.UserList(
        users=[
            types.UserAnswer(
                name=one.name, role=one.role, made=one.made, has_password=bool(one.digest)
            )
            for one in call.server.people.users.all()
        ]
    )


async def _on_user(call: Call, act: people_acts.Act, user: Subject) -> str:
    return await asyncio.to_thread(act, call.server, user, call.by)


async def add_user(call: Call) -> types.MadeUser:
    body: types.NewUser = call.body
    password = await _on_user(call, people_acts.add, Subject(body.name, body.role))
    return types.MadeUser(name=body.name, password=password)


async def set_role(call: Call) -> types.Done:
    body: types.Role = call.body
    await asyncio.to_thread(
        people_acts.set_role, call.server, Subject(call.name, body.role), call.by
    )
    return types.Done(done=f"{call.name} is {body.role} now")


async def reset_password(call: Call) -> types.MadeUser:
    password = await _on_user(call, people_acts.reset, Subject(call.name))
    return types.MadeUser(name=call.name, password=password)


async def delete_user(call: Call) -> types.Done:
    await _on_user(call, people_acts.delete, Subject(call.name))
    return types.Done(done=f"{call.name} is deleted, with all tokens and sessions")


async def see_as(call: Call) -> types.SeenAs:
    name, query = call.query.get("person", ""), call.query.get("query", "")
    if not 0 < len(name) <= MAX_NAME:
        raise HttpError(f"person: expected a name of 1 to {MAX_NAME} characters.", 400)
    assert call.search is not None
    reader, source = await call.server.people.reader(name)
    _note(call, "see as", people_acts.described(reader, source))
    found = await call.search(reader, query) if query else {}
    return types.SeenAs(
        person=reader.name,
        role=reader.role,
        source=source,
        principals=sorted(reader.principals),
        total=found.get("total", 0),
        hits=[types.SeenHit(url=one["url"], title=one["title"]) for one in found.get("hits", ())],
    )


async def audit(call: Call) -> types.AuditLog:
    rows = call.server.crawls.audit.last(200)
    return types.AuditLog(
        acts=[types.AuditRow(**dict(zip(_ROW, row, strict=True))) for row in rows]
    )


_ROW = ("time", "who", "address", "act", "what", "result")


def _note(call: Call, act: str, what: str, result: str = "done") -> None:
    call.server.crawls.audit.note(call.by.who, call.by.address, act, what, result)


_ONE = "/crawls/{name}"
OPERATIONS = (
    Operation("GET", "/crawls", "All crawls and the queue", crawls, types.CrawlList, scope=READ),
    Operation(
        "POST",
        "/crawls",
        "Create a crawl",
        create,
        types.CrawlDetail,
        types.NewCrawl,
        status=201,
        scope=EDIT,
    ),
    Operation("GET", _ONE, "A crawl and its file", crawl, types.CrawlDetail, scope=EDIT),
    Operation(
        "PATCH",
        _ONE,
        "Change keys of a crawl file",
        change,
        types.CrawlDetail,
        types.CrawlChange,
        scope=EDIT,
    ),
    Operation("DELETE", _ONE, "Delete a crawl", delete, types.Done, types.Deletion, scope=EDIT),
    Operation("POST", f"{_ONE}/start", "Start a run", start, types.Done, scope=EDIT),
    Operation(
        "POST", f"{_ONE}/stop", "Stop a run, or leave the queue", stop, types.Done, scope=EDIT
    ),
    Operation("POST", f"{_ONE}/pause", "Pause a run", pause, types.Done, scope=EDIT),
    Operation("POST", f"{_ONE}/resume", "Continue a paused run", resume, types.Done, scope=EDIT),
    Operation(
        "POST", f"{_ONE}/visit", "Visit pages again", visit, types.Done, types.Visit, scope=EDIT
    ),
    Operation(
        "POST", "/preview", "Look at a crawl", preview, types.LookAnswer, types.Look, scope=EDIT
    ),
    Operation(
        "POST",
        f"{_ONE}/preview",
        "See what a change would change; fetches nothing",
        preview_change,
        types.ChangeAnswer,
        types.CrawlChange,
    ),
    Operation("GET", f"{_ONE}/runs", "The runs of a crawl", runs, types.RunList, scope=READ),
    Operation(
        "GET",
        f"{_ONE}/runs/{{number}}/log",
        "The end of a run's log",
        log,
        types.Log,
        query=("bytes",),
    ),
    Operation(
        "POST",
        "/index",
        "Push documents",
        push,
        types.PushAnswer,
        scope=PUSH,
        kinds=(JSON, LINES[0]),
        lines=types.PushAnswers,
        query=("collection",),
        status=201,
    ),
    Operation(
        "PUT",
        "/index",
        "Push a file, which is the body",
        push_file,
        types.PushAnswer,
        scope=PUSH,
        kinds=("*/*",),
        query=FILE_QUERY,
        status=201,
    ),
    Operation(
        "DELETE",
        "/index",
        "Take a pushed document out",
        unpush,
        types.Done,
        scope=PUSH,
        query=("url", "collection"),
    ),
    Operation(
        "GET",
        "/index",
        "The state of a pushed document",
        pushed,
        types.PushedDocument,
        scope=PUSH,
        query=("url", "collection"),
    ),
    Operation(
        "GET",
        "/search",
        "Search the pages of all crawls",
        search,
        types.SearchAnswer,
        scope=SEARCH,
        query=api_search.SEARCH_QUERY,
    ),
    Operation(
        "GET",
        "/page",
        "The text of a page as Markdown, by section",
        page,
        types.PageAnswer,
        scope=SEARCH,
        query=api_search.PAGE_QUERY,
    ),
    Operation(
        "GET", "/tokens", "All tokens, without the tokens themselves", tokens, types.TokenList
    ),
    Operation(
        "POST", "/tokens", "Make a token", make_token, types.MadeToken, types.NewToken, status=201
    ),
    Operation("DELETE", "/tokens/{name}", "Remove a token", remove_token, types.Done),
    Operation("GET", "/users", "All users", users, types.UserList),
    Operation("POST", "/users", "Add a user", add_user, types.MadeUser, types.NewUser, status=201),
    Operation("PATCH", "/users/{name}", "Set a user's role", set_role, types.Done, types.Role),
    Operation(
        "POST", "/users/{name}/reset", "Give a user a new password", reset_password, types.MadeUser
    ),
    Operation("DELETE", "/users/{name}", "Delete a user", delete_user, types.Done),
    Operation(
        "GET",
        "/see-as",
        "Search as another person",
        see_as,
        types.SeenAs,
        query=("person", "query"),
    ),
    Operation("GET", "/audit", "The last acts", audit, types.AuditLog),
)


def add_routes(router: web.UrlDispatcher, server: Server, search_as: SearchAs, ask: Ask) -> None:
    """All operations; documents may be pushed to /api/index, too."""
    for operation in OPERATIONS:
        handler = _handler(operation, server, search_as, ask)
        for base in (BASE, "/api") if operation.path == "/index" else (BASE,):
            if operation.method == "GET":
                router.add_get(base + operation.path, handler)
            else:
                router.add_route(operation.method, base + operation.path, handler)


def _handler(
    operation: Operation, server: Server, search_as: SearchAs, ask: Ask
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            by = _allowed(request, operation)
            body = None if operation.body is None else await _body(request, operation.body)
            path, query = dict(request.match_info), dict(request.query)
            search = partial(search_as, request)
            call = Call(server, by, path, query, body, search, request, ask)
            found = await operation.run(call)
        except CrawlFileError as error:
            return answered(_error(str(error), error.problems), 400)
        except LarmspiderError as error:
            status = error.status if isinstance(error, HttpError) else 500
            response = answered(
                _error(str(error)), 400 if isinstance(error, ConfigError) else status
            )
            if status == 429:
                response.headers["Retry-After"] = str(error.values["seconds"])
            return response
        own = isinstance(found, types.PushAnswer | types.PushAnswers)
        return answered(found, getattr(found, "status", 200) if own else operation.status)

    return handler


def _allowed(request: web.Request, operation: Operation) -> By:
    """The caller. Raises HttpError for a caller who may not."""
    proof, guard = proof_of(request), request.app[SITE].guard
    if operation.method != "GET" and (reason := guard.foreign(request.headers)):
        raise HttpError(f"Refused: {reason}.", 403)
    if proof.wait:
        raise tried_too_often(proof.wait)
    is_anonymous = proof.identity is None and "Authorization" not in request.headers
    if operation.scope == SEARCH and is_anonymous and may_search(request):
        return By("", address_of(request), SEARCH)
    if not proof.who:
        raise HttpError("Send a token as Authorization: Bearer TOKEN.", 401)
    lists = operation.scope == READ and proof.may(EDIT)
    if proof.identity is None or not (proof.may(operation.scope) or lists):
        raise HttpError(f"This token may not do that: expected one with {operation.scope}.", 403)
    if operation.method != "GET" and not (operation.scope == PUSH and proof.script):
        csrf = request.headers.get("X-CSRF-Token", "")
        if reason := guard.refuse_post(proof, csrf):
            raise HttpError(f"Refused: {reason}.", 403)
    return By(proof.who, address_of(request), proof.identity.scope)


async def _body(request: web.Request, kind: type[Struct]) -> Any:
    if request.content_type != JSON:
        raise HttpError("Refused: expected a body of application/json.", 415)
    try:
        async with asyncio.timeout(10.0):
            return msgspec.json.decode(await request.read(), type=kind)
    except TimeoutError:
        raise HttpError("The body took longer than 10 s to come.", 408) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(f"The body cannot be read: {error}", 400) from None


def _error(text: str, problems: tuple[Problem, ...] = ()) -> types.Error:
    found = [types.ProblemAnswer(key=one.key, text=one.text, line=one.line) for one in problems]
    return types.Error(error=text, problems=found)


def answered(value: Struct, status: int = 200) -> web.Response:
    """A Struct as JSON, with no character that could end a script element."""
    body = msgspec.json.encode(value).replace(b"<", b"\\u003c")
    return web.Response(body=body, status=status, content_type=JSON, charset="utf-8")
