"""One command a file, thin: arguments, a call into the rooms below, text or JSON.

The console script ``larmspider`` is ``scrapy`` with our settings, so it has our commands in any
directory. SCRAPY_SETTINGS_MODULE names settings of your own.
"""

from __future__ import annotations

import os


def main() -> None:
    """Run the command that sys.argv names; ends with SystemExit."""
    os.environ.setdefault("SCRAPY_SETTINGS_MODULE", "larmspider.settings")
    from scrapy.cmdline import execute  # reads the variable

    execute()
