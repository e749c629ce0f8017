"""A settings module by which a worker hears late of what Redis has answered to its heartbeat.

    SCRAPY_SETTINGS_MODULE=tests.support.workers.late_news scrapy workers -n 3 ...

For so long it has blocks that it knows nothing of: as where the machine is busy, but always.
"""

from __future__ import annotations

import time

from larmspider.cluster.membership import Beat
from larmspider.cluster.worker import ClusterWorker
from larmspider.settings import *  # noqa: F403

LATE_SECS = 1.2
_on_beat = ClusterWorker._on_beat


def _later(self: ClusterWorker, beat: Beat) -> None:
    time.sleep(LATE_SECS)
    _on_beat(self, beat)


ClusterWorker._on_beat = _later  # type: ignore[method-assign]
