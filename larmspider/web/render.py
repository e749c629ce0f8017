"""Jinja2 over the package's own files, with autoescape, and the filters of the pages.

{{ row.size|size }}  {{ wait|duration }}  {{ visit.time|when }}  {{ title|printable }}
<a href="{{ href('/url', u=url) }}">

The package may be a zipped egg: files are read by importlib.resources, never by path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FunctionLoader, StrictUndefined

from larmspider import __version__
from larmspider import formatting as quantities
from larmspider.formatting import printable, utc

_PACKAGE = "larmspider.web"


@cache
def _packaged_in(folder: str) -> dict[str, bytes]:
    found = files(_PACKAGE).joinpath(folder).iterdir()
    return {file.name: file.read_bytes() for file in found if file.is_file()}


def packaged(folder: str, name: str) -> bytes | None:
    """A file of templates/ or static/; None where there is none of that name. No name leads to the
    disk: all files are read when the first is asked for."""
    return _packaged_in(folder).get(name)


def _source_of(name: str) -> str | None:
    content = packaged("templates", name)
    return None if content is None else content.decode("utf-8")


def when(epoch: float) -> str:
    """``2026-01-31 12:00:00``, UTC; "" for 0 and never."""
    if not epoch or not math.isfinite(epoch):
        return ""
    return utc(epoch)[:19].replace("T", " ")


_IN_TEXT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z?")


def times(text: str) -> str:
    """Times in a text as when() has them, in place of those of the logs."""
    return _IN_TEXT.sub(r"\1 \2", text)


def href(path: str, **query: Any) -> str:
    """A link inside the application; parameters that are None or "" are left out."""
    named = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "")}
    found = urlencode(named, quote_via=quote, errors="replace")
    return f"{quote(path, errors='replace')}?{found}" if found else quote(path, errors="replace")


def outward(url: str) -> str:
    """``url`` if it is http or https, so that it may stand in an href, else "#"."""
    return url if url.lower().startswith(("http://", "https://")) else "#"


FILTERS: dict[str, Callable[..., str]] = {
    "size": quantities.size,
    "duration": quantities.duration,
    "count": quantities.count,
    "rate": quantities.rate,
    "counted": quantities.counted,
    "when": when,
    "times": times,
    "printable": lambda text: printable(str(text)),
    "outward": outward,
}


class Templates:
    """``globals_`` are known in all templates, beside href() and the version."""

    def __init__(self, **globals_: Any) -> None:
        self._environment = Environment(
            loader=FunctionLoader(_source_of),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= FILTERS
        self._environment.globals |= {"href": href, "version": __version__, **globals_}

    def render(self, name: str, **values: Any) -> str:
        """The template with these values."""
        return self._environment.get_template(name).render(values)

    def macro(self, template: str, name: str, *args: Any) -> str:
        """What a macro of a template makes of these."""
        made: Callable[..., str] = getattr(self._environment.get_template(template).module, name)
        return str(made(*args))
