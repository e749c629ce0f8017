"""A worker's signs of life: a thread that renews its lease, every third of a lease.

While partitions change hands it renews more often, or each move would wait for the next renewal.

    heart = Heartbeat(membership, lease, on_beat=..., on_end=...)
    heart.beat()                  # the first one, in this thread
    heart.start()
    ...
    heart.stop()

If Redis does not answer, beats are retried several times a lease. If the lease ends by the clock,
the worker pauses until Redis says that no other worker has taken over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from larmspider.cluster.membership import NO_LOAD, Beat, Membership, WorkerLease
from larmspider.frontier.storage.backend import BackendError

logger = logging.getLogger(__name__)

BEATS = 3
"""Renewals in a lease."""
SOON_SECS = 0.5
"""Seconds between two beats while partitions change hands, and in a worker's first lease, when
others may be about to join."""
SOON_WORKERS = 8
"""With more workers the pause is longer: all together ask Redis 16 times a second at most."""
_TRIES = 20  # beats in a lease while Redis does not answer


def pause(beat: Beat, lease_secs: float, *, young: bool) -> float:
    """Seconds until the next beat. ``young``: the worker is in its first lease."""
    regular = lease_secs / BEATS
    if not (beat.moving or young):
        return regular
    return min(regular, SOON_SECS * max(1.0, beat.workers / SOON_WORKERS))


class Heartbeat:
    """``on_beat``, and ``on_end`` with Fenced or Lost, are called in the thread."""

    def __init__(
        self,
        membership: Membership,
        lease: WorkerLease,
        on_beat: Callable[[Beat], None],
        on_end: Callable[[BackendError], None],
    ) -> None:
        self.membership, self.lease = membership, lease
        self._on_beat, self._on_end = on_beat, on_end
        self.load = NO_LOAD
        """The load of the worker, for the next beat."""
        self._stopped = threading.Event()
        self._now = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._rests = False

    def beat(self) -> Beat:
        """Renew the lease. Raises Fenced, Lost, and what UNREACHABLE lists."""
        sent = self.lease.now()
        beat = self.membership.beat(self.load)
        self.lease.renewed(sent)
        return beat

    def start(self) -> None:
        self._thread.start()

    def soon(self) -> None:
        """Send the next beat now."""
        self._now.set()

    def stop(self) -> None:
        """End the beats. The lease is not given back."""
        self._stopped.set()
        self._now.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        seconds = self.lease.seconds
        born = self.lease.now()
        wait = pause(Beat(), seconds, young=True)
        while True:
            self._now.wait(wait)
            self._now.clear()
            if self._stopped.is_set():
                return
            try:
                beat = self.beat()
            except BackendError as error:
                self.lease.end()
                self._on_end(error)
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the worker rests without a beat
                self._tell(error)
                wait = seconds / _TRIES
            else:
                self._tell(None)
                wait = pause(beat, seconds, young=self.lease.now() < born + seconds)
                if not self._stopped.is_set():
                    self._on_beat(beat)

    def _tell(self, error: Exception | None) -> None:
        if error is None and self._rests and self.lease.valid:
            self._rests = False
            logger.warning("The lease of this worker is renewed: it continues")
        elif error is not None and not self._rests and not self.lease.valid:
            self._rests = True
            logger.warning(
                "Redis has not renewed this worker's lease for %.0f s (%s): nothing is fetched"
                " until it does",
                self.lease.seconds,
                " ".join(str(error).split()) or type(error).__name__,
            )
