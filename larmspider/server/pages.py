"""The server's own pages: all crawls, one crawl, a new one, the first start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from larmspider.errors import ConfigError, HttpError
from larmspider.server.api.api import Server, summary_of
from larmspider.server.api.api_types import ChangeAnswer
from larmspider.server.api.crawls import version_of
from larmspider.server.form import groups
from larmspider.server.runs.failures import FETCHES, failures
from larmspider.server.runs.runs import tail_of
from larmspider.web.auth import EDIT, OPERATE, SEARCH
from larmspider.web.reader import ROLES
from larmspider.web.request import PageView, WebRequest, WebResponse, json_response
from larmspider.web.views.control import login
from larmspider.web.views.curated import curated
from larmspider.web.views.queries import queries
from larmspider.web.views.service import HEALTH

LOG_BYTES = 65_536


def crawls(server: Server, request: WebRequest) -> WebResponse:
    manager = server.manager
    rows = [summary_of(manager, entry) for entry in manager.entries().values()]
    return request.render(
        "crawls.html",
        rows=rows,
        queue=manager.queue,
        manager=manager,
        running=manager.running,
        waits=server.waits,
    )


def manage(server: Server, request: WebRequest, changes: ChangeAnswer | None = None) -> WebResponse:
    """The page of a crawl. ``changes``: the changes that the typed form would make."""
    manager, name = server.manager, request.path["name"]
    entry = manager.entries().get(name)
    if entry is None:
        raise HttpError("There is no such crawl (any more).", 404)
    try:
        text = manager.home.text_of(name)
    except ConfigError:
        text = ""
    version = version_of(text)
    if not request.signed_in:  # settings may hold what an editor is not to see
        text = ""
    state = manager.state_of(name)
    runs = [*([state.run] if state.run else []), *reversed(state.runs)]
    return request.render(
        "manage.html",
        row=summary_of(manager, entry),
        crawl=entry.crawl,
        text=text,
        version=version,
        runs=runs,
        held=state.held,
        complete=state.complete,
        disk_full=manager.disk_full,
        groups=groups(entry.crawl, _typed(request), _secrets(server, request)),
        changes=changes,
        directory=str(manager.directory_of(entry)),
        shared=server.crawls.warnings(entry.crawl, name) if entry.crawl is not None else [],
    )


def log(server: Server, request: WebRequest) -> WebResponse:
    name, number = request.path["name"], request.path["number"]
    if name not in server.manager.entries() or not number.isascii() or not number.isdecimal():
        raise HttpError("There is no such log.", 404)
    folder = server.manager.home.runs_of(name)
    try:
        text = tail_of(folder, int(number[:9]), LOG_BYTES)
    except OSError:
        raise HttpError("There is no such log (any more).", 404) from None
    return request.render("run_log.html", crawl=name, number=number, text=text)


def new(server: Server, request: WebRequest) -> WebResponse:
    """The form, with the values of the crawl ``copy`` if there is one."""
    found = server.manager.entries().get(request.text("copy", limit=64))
    crawl = None if found is None else found.crawl
    form = groups(crawl, _typed(request), _secrets(server, request))
    return request.render("new_crawl.html", groups=form, look=None, shared=[])


def _typed(request: WebRequest) -> Mapping[str, str]:
    return request.flash.typed if request.flash else {}


def file(server: Server, request: WebRequest) -> WebResponse:
    """The crawl file, to download."""
    name = request.path["name"]
    if name not in server.manager.entries():
        raise HttpError("There is no such crawl (any more).", 404)
    text = server.manager.home.text_of(name)
    disposition = {"Content-Disposition": f'attachment; filename="{name}.toml"'}
    return WebResponse(text.encode(), "application/toml; charset=utf-8", headers=disposition)


def failed(server: Server, request: WebRequest) -> WebResponse:
    """The last failed fetches of all crawls."""
    manager = server.manager
    found = failures(
        (entry.name, manager.directory_of(entry)) for entry in manager.entries().values()
    )
    if request.text("format") == "json":
        rows = [{"crawl": one.crawl, **asdict(one.fetch)} for one in found.rows]
        return json_response({"failed": rows, "left_out": found.left_out})
    return request.render("failed.html", rows=found.rows, left_out=found.left_out, fetches=FETCHES)


def acts(server: Server, request: WebRequest) -> WebResponse:
    return request.render("audit.html", rows=server.crawls.audit.last(200))


def users(server: Server, request: WebRequest) -> WebResponse:
    tokens = server.tokens.all()
    rows = [
        (one, ", ".join(token.name for token in tokens if token.user == one.name))
        for one in server.people.users.all()
    ]
    return request.render(
        "users.html", rows=rows, roles=ROLES, made=None, problem=server.people.table.problem
    )


def see(_: Server, request: WebRequest) -> WebResponse:
    """The form of "see as"."""
    return request.render("see.html", principals=sorted(request.reader.principals))


def account(server: Server, request: WebRequest) -> WebResponse:
    """The principals of the person who asks, and a form for a new password."""
    return request.render(
        "account.html",
        principals=sorted(request.reader.principals),
        user=server.people.users.find(request.who),
    )


def first(server: Server, request: WebRequest) -> WebResponse:
    """The form for the one-time key. The page is gone once there is a token."""
    if server.tokens.can_operate():
        raise HttpError("The one-time key was used: sign in.", 410)
    return request.render(
        "first.html", key=request.text("key", limit=100), wrong=False, problem="", typed="admin"
    )


def healthz(server: Server, _: WebRequest) -> WebResponse:
    """200 while nothing is wrong; 503 if the disk is full."""
    full = bool(server.manager.disk_full)
    word = b"broken" if full else b"ok"
    body = b'{"status": "%s", "running": %d}\n' % (word, len(server.manager.running))
    return WebResponse(body, "application/json", 503 if full else 200)


def metrics(server: Server, _: WebRequest) -> WebResponse:
    """The metrics for Prometheus, a row for each crawl."""
    manager = server.manager
    rows = [summary_of(manager, entry) for entry in manager.entries().values()]
    lines = []
    for name, text, value in (
        ("running", "Whether the crawl runs.", lambda row: int(row.name in manager.running)),
        (
            "paused",
            "Whether the crawl runs, but is paused.",
            lambda row: int(row.state == "paused"),
        ),
        (
            "waiting",
            "Whether the crawl waits for its turn, its hours or disk space.",
            lambda row: int(row.state == "waiting"),
        ),
        ("broken", "Whether the crawl file is wrong.", lambda row: int(row.state == "broken")),
        ("pages", "Pages stored.", lambda row: row.pages),
        (
            "last_run_seconds",
            "Start of the last run that has ended.",
            lambda row: int(row.last_run),
        ),
        ("next_run_seconds", "The next time of the schedule.", lambda row: int(row.next_run)),
    ):
        lines.append(f"# HELP larmspider_crawl_{name} {text}")
        lines.append(f"# TYPE larmspider_crawl_{name} gauge")
        lines += [f'larmspider_crawl_{name}{{crawl="{row.name}"}} {value(row)}' for row in rows]
    lines += [
        "# HELP larmspider_server_waits Conditions that need a person.",
        "# TYPE larmspider_server_waits gauge",
        f"larmspider_server_waits {len(server.waits)}",
    ]
    text = "\n".join([*lines, ""])
    return WebResponse(text.encode(), "text/plain; version=0.0.4; charset=utf-8")


def _secrets(server: Server, request: WebRequest) -> list[str]:
    """The names of secrets that the form offers; empty for an editor."""
    return server.secrets.names() if request.signed_in else []


def pages_of(server: Server) -> Sequence[PageView]:
    """The pages with their paths."""
    found = (
        ("/", crawls, "Crawls", ""),
        ("/new", new, "New crawl", EDIT),
        ("/manage/{name}", manage, "", EDIT),
        ("/manage/{name}/log/{number}", log, "", OPERATE),
        ("/manage/{name}/file", file, "", OPERATE),
        ("/failed", failed, "Failed URLs", OPERATE),
        ("/acts", acts, "Audit log", OPERATE),
        ("/users", users, "Users", OPERATE),
        ("/see", see, "See as", OPERATE),
        ("/account", account, "", SEARCH),
        ("/first", first, "", ""),
        ("/metrics", metrics, "", ""),
        (HEALTH, healthz, "", ""),
    )
    return (
        *(
            PageView(path, partial(view, server), nav, without_crawl=True, scope=scope)
            for path, view, nav, scope in found
        ),
        PageView("/control/queries", queries, "Search log", without_crawl=True, scope=OPERATE),
        PageView(
            "/control/search",
            curated,
            "Synonyms, best bets and labels",
            without_crawl=True,
            scope=OPERATE,
        ),
        PageView("/login", login, without_crawl=True),
    )
