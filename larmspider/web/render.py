"""Jinja2 over the package's own files, with autoescape, and the filters of the pages.

{{ row.size|size }}  {{ wait|duration }}  {{ visit.time|when }}  {{ title|printable }}
<a href="{{ href('/url', u=url) }}">

The package may be a zipped egg: files are read by importlib.resources, never by path.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from larmspider import __version__, plugin, program
from larmspider import formatting as quantities
from larmspider.formatting import legible, utc
from larmspider.learned.describe import failure_in_words
from larmspider.reports.crawl_report import CrawlReport
from larmspider.urls.file_urls import NOWHERE, OpenableUrls
from larmspider.urls.schemes import is_source

WIDTH, HEIGHT = 600, 100
"""Size of a curve's viewBox, which is stretched to its place."""


@dataclass(frozen=True, slots=True)
class Curve:
    """``path`` is the line, ``area`` the area under it, ``top`` the value at the upper edge."""

    path: str
    area: str
    top: float


def curve(times: Sequence[float], values: Sequence[float]) -> Curve:
    """A curve from the first to the last time, and from 0 to a round value above the highest one.

    >>> curve([0.0, 1.0, 2.0], [0.0, 5.0, 3.0]).path
    'M0,100L300,16.7L600,50'
    """
    top = above(max(values, default=0.0))
    if not times:
        return Curve("", "", top)
    first, span = times[0], (times[-1] - times[0]) or 1.0
    places = [
        f"{_short((at - first) / span * WIDTH)},{_short(HEIGHT - value / top * HEIGHT)}"
        for at, value in zip(times, values, strict=True)
    ]
    if len(places) == 1:
        places.append(f"{WIDTH},{places[0].partition(',')[2]}")
    path = "M" + "L".join(places)
    return Curve(path, f"{path}L{WIDTH},{HEIGHT}L0,{HEIGHT}Z", top)


def above(value: float) -> float:
    """The next of 1, 2, 3, 4, 5, 6, 8, 10 times a power of ten."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(n * power for n in (1, 2, 3, 4, 5, 6, 8, 10, 20) if n * power >= value)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


_PACKAGE = "larmspider.web"


@cache
def _packaged_in(folder: str, package: str) -> dict[str, bytes]:
    found = files(package).joinpath(folder).iterdir()
    return {file.name: file.read_bytes() for file in found if file.is_file()}


def packaged(folder: str, name: str, package: str = _PACKAGE) -> bytes | None:
    """A file of templates/ or static/; None for an unknown name. Names are looked up among the
    files of the package, so none leads to another place of the disk."""
    return _packaged_in(folder, package).get(name)


def _source_of(name: str) -> str | None:
    """A template of larmspider.web, or of a plugin: ``mirrors/mirrors.html``."""
    folder, _, file = name.rpartition("/")
    package = f"{plugin.PACKAGE}.{folder}" if folder else _PACKAGE
    content = packaged("templates", file, package)
    return None if content is None else content.decode("utf-8")


def when(epoch: float) -> str:
    """``2026-01-31 12:00:00``, UTC; "" for 0 and never."""
    if not epoch or not math.isfinite(epoch):
        return ""
    return utc(epoch)[:19].replace("T", " ")


_IN_TEXT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z?")


def times(text: str) -> str:
    """``text`` with the logs' times in the format of when()."""
    return _IN_TEXT.sub(r"\1 \2", text)


def href(path: str, **query: Any) -> str:
    """A link inside the application, without parameters that are None or ""."""
    named = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "")}
    found = urlencode(named, quote_via=quote, errors="replace")
    return f"{quote(path, errors='replace')}?{found}" if found else quote(path, errors="replace")


def outward(url: str, opens: OpenableUrls = NOWHERE) -> str:
    """A URL for an href: ``url`` if it is http or https, or the URL at which ``opens`` says that
    readers find a file. Else "", and the page shows no link."""
    if is_source(url):
        return opens(url)
    return url if url.lower().startswith(("http://", "https://")) else ""


def crumbs(url: str) -> str:
    """The way to a page for people, without the query; "#" and the text after it stay.

    >>> crumbs("http://wiki.example/handbook/%C3%9Cber%20uns.html?id=3")
    'wiki.example › handbook › Über uns.html'
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # the host is invalid
        return url
    if parts.scheme not in ("http", "https") and not is_source(url):
        return url
    steps = [unquote(step) for step in parts.path.split("/") if step]
    return " › ".join([parts.netloc, *steps] if parts.netloc else steps) + (
        f" #{unquote(parts.fragment)}" if parts.fragment else ""
    )


def _in_the_language(name: str, plain: Callable[..., str]) -> Callable[..., str]:
    """A filter by the method ``name`` of Words on pages that have a language, else ``plain``."""

    @pass_context
    def localized(context: Context, *values: Any) -> str:
        say = context.get("say")
        return plain(*values) if say is None else str(getattr(say, name)(*values))

    return localized


FILTERS: dict[str, Callable[..., str]] = {
    "size": _in_the_language("size", quantities.size),
    "duration": _in_the_language("duration", quantities.duration),
    "count": _in_the_language("count", quantities.count),
    "rate": _in_the_language("rate", quantities.rate),
    "counted": _in_the_language("counted", quantities.counted),
    "when": _in_the_language("when", when),
    "failure": failure_in_words,
    "times": _in_the_language("times", times),
    "printable": lambda text: legible(str(text)),
    "crumbs": crumbs,
}


class Templates:
    """``opens`` says where readers find files. ``globals_`` are available in all templates, like
    href() and the version."""

    def __init__(self, opens: OpenableUrls = NOWHERE, **globals_: Any) -> None:
        self.opens = opens
        self._environment = Environment(
            loader=FunctionLoader(_source_of),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= FILTERS | {"outward": partial(outward, opens=opens)}
        self._environment.globals |= {
            "href": href,
            "code": Markup("<code>{}</code>").format,
            "command": Markup('<code class="command">{}</code>').format,
            "strong": Markup("<strong>{}</strong>").format,
            "link": Markup('<a href="{}">{}</a>').format,
            "version": __version__,
            "program": program.NAME,
            **globals_,
        }

    def render(self, name: str, **values: Any) -> str:
        return self._environment.get_template(name).render(values)

    def macro(self, template: str, name: str, say: Any, *args: Any) -> str:
        """The text of a macro, whose first argument is the page's Words."""
        module = self._environment.get_template(template).make_module({"say": say})
        made: Callable[..., str] = getattr(module, name)
        return str(made(say, *args))


CURVES = (
    ("Pages a second", "pages", "rate"),
    ("Bytes a second", "bytes", "size"),
    ("Queued", "queued", "count"),
    ("Memory", "memory", "size"),
)


def report_page(report: CrawlReport, directory: str) -> str:
    """The report of a crawl as one self-contained HTML page: style inside, no script, no
    request."""
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
