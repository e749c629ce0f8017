"""A running crawl as a few lines of a terminal, drawn by rich.

    lines = View(color=True).lines(progress, width=80, height=24)

A narrow or low window gets one line; one below 20 columns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from larmspider.formatting import count, duration, printable, rate, size
from larmspider.status.forecast import HostForecast

NARROW, LOW = 60, 12
"""Below so many columns, or lines, one line is shown."""
TOO_NARROW = 20
HOSTS_MOST = 5
_URLS = (("stored", "green"), ("queued", ""), ("in flight", ""), ("failed", "red"), ("refused", ""))


@dataclass(frozen=True, slots=True)
class Progress:
    """``seconds`` since this run began; ``pages`` and ``bytes`` a second of late; ``memory`` in
    bytes; ``urls`` of the whole crawl by state; ``hosts`` numbers of hosts by state.

    ``end``: seconds until then, None where that cannot be told; ``reasons`` are sentences.
    ``parked``: name, and for what and how long it waits. ``state``: running, paused, or what it
    waits for.
    """

    seconds: float
    pages: float
    bytes: float
    memory: int
    urls: Mapping[str, int]
    hosts: Mapping[str, int] = field(default_factory=dict)
    end: float | None = None
    reasons: Sequence[str] = ()
    slowest: Sequence[HostForecast] = ()
    parked: Sequence[tuple[str, str]] = ()
    state: str = "running"


class View:
    """``color``: None asks the environment (NO_COLOR, TERM, COLORTERM)."""

    def __init__(self, *, color: bool | None = None) -> None:
        self._color = color

    def lines(self, progress: Progress, width: int, height: int) -> list[str]:
        """None wider than ``width``, fewer than ``height``; with the codes of their colours."""
        if width < TOO_NARROW or height < 3:
            return []
        if width < NARROW or height < LOW:
            return self._drawn([_short(progress)], width)
        room = min(HOSTS_MOST, (height - 6) // 2)
        parts: list[Text | Table] = [*_head(progress)]
        if progress.slowest and room > 0:
            parts.append(_table(progress.slowest[:room]))
        parts += [
            _labelled("parked", f"{host}  {why}", "yellow") for host, why in progress.parked[:room]
        ]
        return self._drawn(parts, width)[: height - 1]

    def _drawn(self, parts: Sequence[Text | Table], width: int) -> list[str]:
        sink = StringIO()
        console = Console(
            file=sink,
            force_terminal=True,
            no_color=None if self._color is None else not self._color,
            width=width,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        for part in parts:
            console.print(part, no_wrap=True, overflow="ellipsis", crop=True)
        return [line.rstrip() for line in sink.getvalue().splitlines()]


def _head(progress: Progress) -> list[Text]:
    rates = Text()
    _add(rates, rate(progress.pages), "pages/s", "bold")
    _add(rates, f"{size(progress.bytes)}/s")
    _add(rates, size(progress.memory), "memory")
    _add(rates, duration(progress.seconds), printable(progress.state))
    urls = Text()
    for name, style in _URLS:
        number = progress.urls.get(name, 0)
        _add(urls, count(number), name, f"bold {style}" if number else "")
    hosts = Text()
    for name, number in progress.hosts.items():
        _add(hosts, count(number), f"{'host' if number == 1 else 'hosts'} {name}")
    end = Text("end  ", "dim")
    end.append("not to be told" if progress.end is None else f"in {duration(progress.end)}", "bold")
    for reason in progress.reasons[:1]:
        end.append(f": {printable(reason)}")
    return [line for line in (rates, urls, hosts, end) if line]


def _short(progress: Progress) -> Text:
    line = Text()
    _add(line, f"{rate(progress.pages)}/s", style="bold")
    _add(line, count(progress.urls.get("stored", 0)), "stored", "green")
    _add(line, count(progress.urls.get("queued", 0)), "queued")
    if progress.end is not None:
        _add(line, duration(progress.end), "left")
    return line


def _table(hosts: Sequence[HostForecast]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
    table.add_column(no_wrap=True, justify="right", width=9)
    table.add_column(no_wrap=True, justify="right", width=11)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=5)
    table.add_row(*(Text(name, "dim") for name in ("slowest hosts", "queued", "left", "because")))
    for host in hosts:
        table.add_row(
            Text(printable(host.host)),
            Text(count(host.queued)),
            Text(duration(host.seconds)),
            Text(printable(host.reason), "dim"),
        )
    return table


def _add(line: Text, value: str, label: str = "", style: str = "") -> None:
    line.append(value, style or None)
    line.append(f" {label}   " if label else "   ", "dim")


def _labelled(label: str, text: str, style: str) -> Text:
    return Text.assemble((f"{label}  ", style), printable(text))
