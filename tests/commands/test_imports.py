"""What a command imports before it begins: Scrapy imports the modules of all of them for each."""

from __future__ import annotations

import subprocess
import sys

IMPORT_ALL = """
import sys
from scrapy.utils.misc import walk_modules_iter
list(walk_modules_iter("larmspider.commands"))
print(*sys.modules)
"""


def test_no_command_imports_what_another_needs() -> None:
    """Of the web pages, Redis and PageRank nothing: together they took a third of a start."""
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=True
    )
    imported = set(ran.stdout.split())
    assert {"larmspider.commands.serve", "larmspider.commands.workers"} <= imported
    assert not {"aiohttp", "jinja2", "prometheus_client", "redis", "numpy"} & imported
