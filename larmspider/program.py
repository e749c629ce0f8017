"""The name under which this program was called, for messages that name a command to run.

``scrapy`` and ``larmspider`` have the same commands. Processes that a command starts inherit the
name by the environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "LARMSPIDER_PROGRAM"
OWN = "larmspider"
NAMES = (OWN, "scrapy")


def called_as() -> str:
    """``larmspider`` or ``scrapy``; ``scrapy`` in a process that neither started, such as
    scrapyd's jobs and scripts."""
    own = Path(sys.argv[0]).stem if sys.argv else ""
    if own in NAMES:
        return own
    inherited = os.environ.get(VARIABLE, "")
    return inherited if inherited in NAMES else "scrapy"


NAME = called_as()
