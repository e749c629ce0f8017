"""Runs workers side by side until all have ended: one line of progress for all, signals passed on.

A first SIGINT or SIGTERM is passed on and the workers stop in order; a second one ends them at
once. SIGHUP, of a terminal that is closed, is a SIGTERM to them, however often it comes.
A message that several workers end with is told once.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType

from larmspider.formatting import printable
from larmspider.workers.process import WorkerProcess
from larmspider.workers.progress import Progress

TICK_SECS = 0.1
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NEWS_MOST = 20
"""Lines of one worker that are shown at a time."""


class Supervisor:
    """``say`` is given each line for the terminal, one of progress every ``interval`` seconds.
    ``beside`` sees to what the workers need, and says what there is to say."""

    def __init__(
        self,
        workers: Sequence[WorkerProcess],
        progress: Progress,
        interval: float,
        say: Callable[[str], object],
        beside: Callable[[], str] = str,
    ) -> None:
        self.workers = list(workers)
        self.signals = 0
        """How many have come."""
        self._progress, self._interval, self._say = progress, interval, say
        self._beside = beside
        self._told: set[str] = set()
        self._shown = False  # some progress

    def run(self) -> None:
        """Until the last worker has ended. No worker outlives this."""
        before = {number: signal.getsignal(number) for number in _PASSED_ON}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # nohup
                signal.signal(number, self._pass_on)
        try:
            self._watch()
        finally:
            for worker in self.workers:
                worker.send(signal.SIGTERM)
            while any(worker.running for worker in self.workers):
                self._tend()
                time.sleep(TICK_SECS)
            if self._shown:
                self._say(self._progress.last_line())
            for number, handler in before.items():
                signal.signal(number, handler)

    def _watch(self) -> None:
        due = time.monotonic() + self._interval
        while not all(worker.ended for worker in self.workers):
            self._tend()
            if said := self._beside():
                self._say(said)
            if time.monotonic() >= due:
                due += self._interval
                if running := sum(worker.running for worker in self.workers):
                    self._say(self._progress.line(running))
                    self._shown = True
            time.sleep(TICK_SECS)

    def _tend(self) -> None:
        for worker in self.workers:
            was_running = worker.running
            event = worker.tend()
            shown = list(worker.news())
            for line in shown[:_NEWS_MOST]:
                self._say(f"[{worker.name}] {printable(line)}")
            if len(shown) > _NEWS_MOST:
                self._say(f"[{worker.name}] and {len(shown) - _NEWS_MOST} more in {worker.log}")
            if was_running and not worker.running and worker.last_words not in self._told:
                self._told.add(worker.last_words)
                if worker.last_words:
                    self._say(f"[{worker.name}] {printable(worker.last_words)}")
            if event:
                self._say(f"[{worker.name}] {event}")

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        if number == signal.SIGHUP:  # the system sends it, and the shell too
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            number = signal.SIGTERM
        for worker in self.workers:
            worker.send(signal.Signals(number))

    @property
    def exit_status(self) -> int:
        """0: all ended well; 2: all were refused; 1: one did not end as it should."""
        statuses = {worker.status for worker in self.workers}
        if statuses <= {0}:
            return 0
        return 2 if statuses == {2} else 1
