"""One command a file, thin: arguments, a call into the rooms below, text or JSON.

The console script ``larmspider`` runs them, and Scrapy's own commands, in any directory.
SCRAPY_SETTINGS_MODULE names settings of your own, which Python finds by PYTHONPATH. ``scrapy`` runs
the same commands in a folder with our scrapy.cfg.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command that sys.argv names; ends with SystemExit."""
    module = os.environ.setdefault("SCRAPY_SETTINGS_MODULE", "larmspider.settings")
    from larmspider import program
    from larmspider.command_line import run

    os.environ[program.VARIABLE] = program.NAME
    try:
        run(sys.argv[1:])
    except ModuleNotFoundError as error:
        if error.name is None or error.name not in (module, module.partition(".")[0]):
            raise
        print(
            f"larmspider: SCRAPY_SETTINGS_MODULE={module}: there is no such module; PYTHONPATH=DIR"
            " names the folder that it is in",
            file=sys.stderr,
        )
        sys.exit(2)
