"""/control: the operator's forms and the log of actions; /login."""

from __future__ import annotations

from larmspider import options
from larmspider.errors import HttpError
from larmspider.frontier.overrides import NOTE, Overrides
from larmspider.status.history import tail
from larmspider.web.request import PageView, WebRequest, WebResponse

LOG_ROWS = 20
LOG_COLUMNS = 5
HOSTS, SEEDS = 50, 10


def control(request: WebRequest) -> WebResponse:
    if not request.signed_in:
        return login(request)
    logs = [directory / "control.log" for directory in request.source.directories]
    lines = [line.split("\t") for log in logs for line in tail(log, LOG_ROWS)]
    acts = sorted((one for one in lines if len(one) == LOG_COLUMNS), reverse=True)[:LOG_ROWS]
    scope, orders = _in_force(request)
    typed = request.flash.typed if request.flash else {}
    return request.render(
        "control.html",
        gauges=request.gauges,
        acts=acts,
        restrict=typed.get("restrict") or request.text("restrict") or scope,
        urls=typed.get("urls", ""),
        typed_threads=typed.get("threads", ""),
        scope=scope,
        seeds=request.source.crawl.seeds[:SEEDS],
        factor=orders.factor,
        threads=orders.threads,
        in_place_of=orders.threads_instead_of,
        for_run=orders.for_run,
        ordered=sorted(orders.hosts.items())[:HOSTS],
        more_ordered=max(0, len(orders.hosts) - HOSTS),
        host=typed.get("host") or request.text("host", limit=300),
        run_state=request.source.run_state,
    )


def _in_force(request: WebRequest) -> tuple[str, Overrides]:
    """Scope ("" stands for the hosts of the seeds) and overrides. If the crawl does not run or
    cannot be reached, they are as of its last checkpoint."""
    if request.gauges is not None:
        return request.gauges.scope, request.gauges.orders
    with request.source.crawl.frontier() as frontier:
        orders = Overrides.unpack(None if frontier is None else frontier.note(NOTE))
    return options.text(request.source.settings, "LARM_RESTRICT"), orders.after_run().copy()


def login(request: WebRequest) -> WebResponse:
    """The form to sign in. Raises HttpError if a program asks for JSON."""
    if request.text("format") == "json":
        raise HttpError("Sign in with the token first.", 401)
    target = request.text("next") or (
        request.url if request.url.startswith("/control") else request.people.start
    )
    return request.render("login.html", target=target, wrong=False, typed="")


PAGES = (
    PageView("/control", control, "Control", live=True),
    PageView("/login", login, without_crawl=True),
)
