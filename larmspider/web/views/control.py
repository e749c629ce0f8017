"""/control: the forms by which an operator steers the crawl, and what was done; /login."""

from __future__ import annotations

from larmspider import options
from larmspider.frontier.overrides import NOTE, Overrides
from larmspider.status.history import tail
from larmspider.web.request import PageView, WebRequest, WebResponse

LOG_ROWS = 20
LOG_COLUMNS = 5
HOSTS, SEEDS = 50, 10


def control(ask: WebRequest) -> WebResponse:
    """Without the token it says how to get in; without a crawl that runs, that there is none."""
    if not ask.signed_in:
        return login(ask)
    logs = [directory / "control.log" for directory in ask.source.directories]
    lines = [line.split("\t") for log in logs for line in tail(log, LOG_ROWS)]
    acts = sorted((one for one in lines if len(one) == LOG_COLUMNS), reverse=True)[:LOG_ROWS]
    scope, orders = _in_force(ask)
    typed = ask.said.typed if ask.said else {}
    return ask.render(
        "control.html",
        numbers=ask.numbers,
        acts=acts,
        restrict=typed.get("restrict") or ask.text("restrict") or scope,
        urls=typed.get("urls", ""),
        scope=scope,
        seeds=ask.source.crawl.seeds[:SEEDS],
        factor=orders.factor,
        ordered=sorted(orders.hosts.items())[:HOSTS],
        more_ordered=max(0, len(orders.hosts) - HOSTS),
        host=typed.get("host") or ask.text("host", limit=300),
        condition=ask.source.condition,
    )


def _in_force(ask: WebRequest) -> tuple[str, Overrides]:
    """The scope, "" for the hosts of the seeds, and what was ordered; of a crawl that does not run,
    or cannot be reached, as of its last checkpoint."""
    if ask.numbers is not None:
        return ask.numbers.scope, ask.numbers.orders
    with ask.source.crawl.frontier() as frontier:
        orders = Overrides.unpack(None if frontier is None else frontier.note(NOTE))
    return options.text(ask.source.settings, "LARM_RESTRICT"), orders.copy()


def login(ask: WebRequest) -> WebResponse:
    target = ask.text("next") or (ask.url if ask.url.startswith("/control") else "/control")
    return ask.render("login.html", target=target)


PAGES = (
    PageView("/control", control, "Control", live=True),
    PageView("/login", login, without_crawl=True),
)
