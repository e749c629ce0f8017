"""/control: the forms by which an operator steers the crawl, and what was done; /login."""

from __future__ import annotations

from larmspider.extensions.web.ask import Ask, Reply
from larmspider.extensions.web.pages import Page
from larmspider.history import tail

LOG_ROWS = 20
LOG_COLUMNS = 5


def control(ask: Ask) -> Reply:
    """Without the token it says how to get in; without a crawl that runs, that there is none."""
    if not ask.signed_in:
        return login(ask)
    logs = [directory / "control.log" for directory in ask.source.directories]
    lines = [line.split("\t") for log in logs for line in tail(log, LOG_ROWS)]
    acts = sorted((one for one in lines if len(one) == LOG_COLUMNS), reverse=True)[:LOG_ROWS]
    restrict = ask.source.settings.get("LARM_RESTRICT") or ""
    return ask.render(
        "control.html",
        numbers=ask.numbers,
        acts=acts,
        restrict=ask.text("restrict") or restrict,
        host=ask.text("host", limit=300),
        condition=ask.source.condition,
    )


def login(ask: Ask) -> Reply:
    target = ask.text("next") or (ask.url if ask.url.startswith("/control") else "/control")
    return ask.render("login.html", target=target)


PAGES = (
    Page("/control", control, "Control", live=True),
    Page("/login", login, without_crawl=True),
)
