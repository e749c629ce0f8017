"""An intranet of real applications, as Debian and PyPI have them: wikis, repositories, listings.

    $ python -m examples.applications
    dokuwiki             http://127.0.0.1:40123/doku.php     409 documents
    ...

Names choose some of them; what is not installed is named with its packages. Ctrl-C ends them.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from tests.support.servers.applications import APPLICATIONS, BEHIND_A_LOGIN, USERS

EVERY = APPLICATIONS | BEHIND_A_LOGIN


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.applications", description="Serve an intranet of applications."
    )
    parser.add_argument(
        "name", nargs="*", help=f"default: all that are installed of {', '.join(EVERY)}"
    )
    parser.add_argument("--documents", type=int, default=400, help="of each, about (default 400)")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.name if name not in EVERY]:
        parser.error(f"{unknown[0]}: expected {', '.join(EVERY)}")
    if options.documents < 10:
        parser.error(f"--documents {options.documents}: expected an integer >= 10")
    with ExitStack() as running:
        started = 0
        for name in options.name or EVERY:
            app = EVERY[name](options.documents)
            if missing := app.missing():
                print(f"{name:20} {', '.join(missing)} missing: {app.wanted()}", file=sys.stderr)
                continue
            running.enter_context(app)
            user = "".join(f", for {one} ({USERS[one]})" for one in USERS if name in BEHIND_A_LOGIN)
            print(f"{name:20} {app.seed:34} {len(app.documents()):>4} documents{user}", flush=True)
            started += 1
        if started:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                signal.pause()
            except KeyboardInterrupt:
                return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
