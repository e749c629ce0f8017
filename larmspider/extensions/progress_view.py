"""A running crawl as a few lines of a terminal, drawn by rich.

    lines = View(color=True).lines(progress, width=80, height=24)

A narrow or low window gets one line; one below 20 columns nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from larmspider.formatting import count, duration, printable, rate, size
from larmspider.status.forecast import HostForecast

_UP = "\033[{}A"
_CLEAR = "\r\033[J"  # from here to the end of the screen
_PLAIN = "\033[0m"


class Region:
    """The last lines of a terminal, kept for a picture while log lines scroll above it.

        region = Region(sys.stderr)
        log_handler.setStream(region)                    # log lines appear above the picture
        region.show(["12.3 pages/s", "4,500 queued"])    # again and again

    ``size`` returns columns and lines. Not rich.live.Live, which draws again for each log line, 10
    ms, and does not reach existing log handlers.
    """

    def __init__(self, stream: TextIO, size: Callable[[], tuple[int, int]] | None = None) -> None:
        self.stream = stream
        self.size = size or (lambda: terminal_size(stream))
        self._shown: list[str] = []
        self._widths: list[int] = []
        self._open_line = False

    def show(self, lines: Sequence[str]) -> None:
        """Replace the picture by ``lines``, each at most as wide as the terminal."""
        erase = self._erase()
        self._shown = list(lines)
        self._widths = [cell_len(Text.from_ansi(line).plain) for line in lines]
        self._put(f"{erase}{self._picture()}")

    def write(self, text: str) -> int:
        """Write log lines above the picture. A line without its end hides the picture until
        then."""
        if text:
            erase = "" if self._open_line else self._erase()
            self._open_line = not text.endswith("\n")
            self._put(f"{erase}{text}{'' if self._open_line else self._picture()}")
        return len(text)

    def flush(self) -> None:
        """Nothing is buffered."""

    def isatty(self) -> bool:
        return self.stream.isatty()

    def close(self) -> None:
        """Remove the picture; the cursor is where it began."""
        self.show([])

    def _picture(self) -> str:
        return "".join(f"{line}{_PLAIN}\n" for line in self._shown)

    def _erase(self) -> str:
        """Codes that go to the picture's first line and clear all below. A terminal that was made
        narrower has wrapped its lines."""
        columns = max(1, self.size()[0])
        rows = sum(max(1, -(-width // columns)) for width in self._widths)
        return f"{_UP.format(rows)}{_CLEAR}" if rows else ""

    def _put(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # the terminal was closed; the crawl goes on without
            self._shown, self._widths = [], []


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Columns and lines of the terminal; 80 and 24 if unknown."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 24
    return found.columns or 80, found.lines or 24


NARROW, LOW = 60, 12
"""Columns and lines below which a single line is shown."""
TOO_NARROW = 20
MAX_HOSTS = 5
_URLS = (("stored", "green"), ("queued", ""), ("in flight", ""), ("failed", "red"), ("refused", ""))


@dataclass(frozen=True, slots=True)
class Progress:
    """``seconds`` since this run began; ``pages`` and ``bytes``: recent rates per second.
    ``memory`` in bytes. ``urls``: the crawl's URLs by state. ``hosts``: the numbers of hosts by
    state.

    ``end``: seconds until the end, None if unknown; ``reasons`` are sentences.
    ``parked``: name, reason and duration of the wait. ``state``: running, paused, or the reason for
    waiting.
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
    """``color``: None goes by the environment (NO_COLOR, TERM, COLORTERM)."""

    def __init__(self, *, color: bool | None = None) -> None:
        self._color = color

    def lines(self, progress: Progress, width: int, height: int) -> list[str]:
        """Fewer than ``height`` lines, none wider than ``width``, with colour codes."""
        if width < TOO_NARROW or height < 3:
            return []
        if width < NARROW or height < LOW:
            return self._drawn([_short(progress)], width)
        room = min(MAX_HOSTS, (height - 6) // 2)
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
    end.append("unknown" if progress.end is None else f"in {duration(progress.end)}", "bold")
    for reason in progress.reasons[:1]:
        end.append(f": {printable(reason)}")
    return [line for line in (rates, urls, hosts, end) if line]


def _short(progress: Progress) -> Text:
    line = Text()
    _add(line, rate(progress.pages), "pages/s", "bold")
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
