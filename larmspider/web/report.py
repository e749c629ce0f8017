"""The report of a crawl as one page that needs nothing else: no script, no other file, no request.

Its style is the application's, written into the page; its policy lets nothing be loaded.
"""

from __future__ import annotations

import time
from typing import Any

from markupsafe import Markup

from larmspider.reports.crawl_report import CrawlReport
from larmspider.web.curves import curve
from larmspider.web.render import Templates, packaged

CURVES = (
    ("Pages a second", "pages", "rate"),
    ("Bytes a second", "bytes", "size"),
    ("Queued", "queued", "count"),
    ("Memory", "memory", "size"),
)


def report_page(report: CrawlReport, directory: str) -> str:
    """HTML."""
    points = report.runs.points
    times = [point.time for point in points]
    drawn: list[tuple[str, str, Any]] = [
        (title, kind, curve(times, [float(getattr(point, name)) for point in points]))
        for title, name, kind in CURVES
        if points
    ]
    style = (packaged("static", "larm.css") or b"").decode("utf-8")
    return Templates().render(
        "report.html",
        report=report,
        curves=drawn,
        first=times[0] if times else 0.0,
        last=times[-1] if times else 0.0,
        directory=directory,
        made=time.time(),
        style=Markup(style),  # noqa: S704 - a file of ours
    )
