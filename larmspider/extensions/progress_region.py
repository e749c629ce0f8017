"""The last lines of a terminal, kept for a picture while log lines go by above it.

region = Region(sys.stderr)
region.show(["12.3 pages/s", "4,500 queued"])    # again and again
log_handler.setStream(region)                    # what is written appears above
region.close()                                   # the picture is gone, the log stays

Why not rich.live.Live: it draws anew, 10 ms, for each line that is logged, and its stand-in for
stderr does not reach handlers that were made before it. Here a picture is text that was drawn once;
a log line costs one write with the old picture behind it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

_UP = "\033[{}A"
_CLEAR = "\r\033[J"  # from here to the end of the screen
_PLAIN = "\033[0m"


class Region:
    """Writes to ``stream``, a terminal; stands in for it as a log handler's stream.

    ``size`` gives columns and lines; a terminal that was made narrower has wrapped the picture.
    """

    def __init__(self, stream: TextIO, size: Callable[[], tuple[int, int]] | None = None) -> None:
        self.stream = stream
        self.size = size or (lambda: terminal_size(stream))
        self._shown: list[str] = []
        self._widths: list[int] = []
        self._open_line = False

    def show(self, lines: Sequence[str]) -> None:
        """Put ``lines`` in place of those shown; each at most as wide as the terminal."""
        erase = self._erase()
        self._shown = list(lines)
        self._widths = [cell_len(Text.from_ansi(line).plain) for line in lines]
        self._put(f"{erase}{self._picture()}")

    def write(self, text: str) -> int:
        """Log lines: they go above the picture. A line without its end hides it until then."""
        if text:
            erase = "" if self._open_line else self._erase()
            self._open_line = not text.endswith("\n")
            self._put(f"{erase}{text}{'' if self._open_line else self._picture()}")
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        return self.stream.isatty()

    def close(self) -> None:
        """Take the picture away, leave the cursor where it began."""
        self.show([])

    def _picture(self) -> str:
        return "".join(f"{line}{_PLAIN}\n" for line in self._shown)

    def _erase(self) -> str:
        """From below the picture to its first line, and all of it cleared."""
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
    """Columns and lines of the terminal; 80 and 24 where it does not say."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 24
    return found.columns or 80, found.lines or 24
