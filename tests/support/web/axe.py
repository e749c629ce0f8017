"""axe-core on the page that a browser shows."""

from __future__ import annotations

from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from tests.support.web.browser import Browser


@cache
def source() -> str:
    files = distribution("axe-playwright-python").files or ()
    return next(Path(str(f.locate())) for f in files if f.name == "axe.min.js").read_text("utf-8")


def findings(browser: Browser) -> list[list[str]]:
    """Its findings, by all rules: the rule, and each element with what is wrong."""
    browser.script(source())
    found: list[list[str]] = browser.driver.execute_async_script(  # type: ignore[no-untyped-call]
        "const done = arguments[0]; axe.run().then(result => done(result.violations.map("
        "rule => [rule.id, ...rule.nodes.map(node => node.html + ' ' + node.failureSummary)])),"
        " error => done(String(error)))"
    )
    return found
