"""One command a file, thin: arguments, a call into the rooms below, text or JSON.

The console script ``larmspider`` is ``scrapy`` with our settings, so it has our commands in any
directory. SCRAPY_SETTINGS_MODULE names settings of your own, which Python finds by PYTHONPATH.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command that sys.argv names; ends with SystemExit."""
    module = os.environ.setdefault("SCRAPY_SETTINGS_MODULE", "larmspider.settings")
    from scrapy.cmdline import execute  # reads the variable

    try:
        execute()
    except ModuleNotFoundError as error:
        if error.name is None or error.name not in (module, module.partition(".")[0]):
            raise
        print(
            f"larmspider: SCRAPY_SETTINGS_MODULE={module}: there is no such module; PYTHONPATH=DIR"
            " names the folder that it is in",
            file=sys.stderr,
        )
        sys.exit(2)
