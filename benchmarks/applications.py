"""What a crawl of real applications stores, and how often it asks, without rules about their views.

    python -m benchmarks.applications [--documents 400] [NAME ...]

Each application of tests/support/servers/applications.py is crawled twice by the default rules,
up to ``--most`` fetches and without delay: with the rules against leaving and changing alone
(examples/applications/rules/acting.txt), which leaves the views to LARM_TRAPS, and with rules
that were written for it by hand (rules/NAME.txt besides), without LARM_TRAPS. Printed are, of
both, the fetches and the share of the documents that the application lists which are stored, and
after how many times the fetches by hand SHARE of the documents had come; "ends after" is how many
times as many fetches the whole crawl took, "-" where it did not end by itself. Exit status 0: after
FACTOR times at most, and no document has only pages of classes in quarantine, so that one with a
name that was never there would be held; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from larmspider.crawl.reader import CrawlDir
from larmspider.learned.traps.host_traps import HostTraps
from larmspider.learned.traps.trap_watch import NOTE
from larmspider.settings import SPIDER_MIDDLEWARES
from tests.support.crawling import PROJECT, crawl, records
from tests.support.servers.application import Application
from tests.support.servers.applications import APPLICATIONS

RULES = PROJECT / "examples" / "applications" / "rules"
NOFOLLOW = {"gitweb", "cgit", "hgweb"}
"""All their pages ask not to follow their links: crawled without NofollowFilter."""
MOST, SHARE, FACTOR, BY_HAND = 1_500, 0.95, 2.0, 1.1


class Counted(NamedTuple):
    """Of one crawl: fetches, documents stored, and those that are so by pages of classes in
    quarantine alone; ``enough`` fetches after which SHARE of all documents were stored, inf for
    never."""

    fetched: int
    stored: set[str]
    quarantined: set[str]
    enough: float


def count(
    app: Application, folder: Path, traps: str, *rules: str, most: int = MOST, **settings: str
) -> Counted:
    """Crawl an application that runs into ``folder``/crawl."""
    known = folder / "known_paths.txt"
    known.write_text("".join((RULES / f"{name}.txt").read_text("utf-8") for name in rules))
    own = {"LARM_TRAPS": traps, "LARM_HOST_MAX_PAGES": str(most), "LARM_LANGUAGES": ""}
    own |= {"LARM_KNOWN_PATHS_FILE": str(known), "CONCURRENT_REQUESTS_PER_DOMAIN": "2"}
    if app.name in NOFOLLOW:
        without = {"larmspider.middlewares.nofollow.NofollowFilter": None}
        own["SPIDER_MIDDLEWARES"] = json.dumps(SPIDER_MIDDLEWARES | without)
    ran = crawl(app.seed, folder, timeout=1800, **own | settings)
    if ran.status:
        raise RuntimeError(ran.err[-3000:])
    documents, stored, open_to_new = app.documents(), set[str](), set[str]()
    held = quarantine(folder / "crawl", app)
    for record in records(folder / "crawl" / "store.log"):
        name = app.document_of(record["url"]) if record["http-code"] == "200" else ""
        if name in documents:
            stored.add(name)
            if held is None or not _is_quarantined(held, record["url-normalized"]):
                open_to_new.add(name)
    fetched = records(folder / "crawl" / "fetch.log")
    came, enough = set[str](), math.inf
    for at, record in enumerate(fetched, 1):
        came |= {app.document_of(record["url"])} & stored
        if len(came) >= SHARE * len(documents):
            enough = at
            break
    return Counted(len(fetched), stored, stored - open_to_new, enough)


def quarantine(path: Path, app: Application) -> HostTraps | None:
    """What was learned of the application's host, but for the values of its URLs: each is new."""
    host = f"{app.address}:{app.port}"
    with CrawlDir(path).frontier() as frontier:
        note = frontier.note(NOTE.format(host=host)) if frontier is not None else None
    return HostTraps.unpack(note, host) if note else None


def _is_quarantined(traps: HostTraps, url: str) -> bool:
    return traps.find(url, 0).blocked is not None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", choices=[*APPLICATIONS, []], metavar="NAME")
    parser.add_argument("--documents", type=int, default=400, help="of each (default 400)")
    parser.add_argument("--most", type=int, default=MOST, help=f"fetches (default {MOST})")
    options = parser.parse_args()
    failed = False
    print(
        f"{'':16}documents  stored  fetches  by hand: stored  fetches  a document"
        f"  {SHARE:.0%} after  quarantined  ends after"
    )
    for name in options.name or APPLICATIONS:
        with (
            APPLICATIONS[name](options.documents) as app,
            tempfile.TemporaryDirectory(prefix="applications-") as folder,
        ):
            for one in ("learned", "by hand"):
                (Path(folder) / one).mkdir()
            by_hand = count(app, Path(folder) / "by hand", "off", "acting", name)
            learned = count(app, Path(folder) / "learned", "learn", "acting", most=options.most)
            documents = len(app.documents())
        share, share_by_hand = (len(one.stored) / documents for one in (learned, by_hand))
        a_document = by_hand.fetched / documents
        times = learned.enough / by_hand.fetched
        ends = (
            "-" if learned.fetched >= options.most else f"{learned.fetched / by_hand.fetched:.2f}"
        )
        failed |= times > FACTOR or a_document > BY_HAND
        failed |= bool(learned.quarantined) or share_by_hand < SHARE
        print(
            f"{name:16}{documents:>9}{share:>8.0%}{learned.fetched:>9}"
            f"{share_by_hand:>17.0%}{by_hand.fetched:>9}"
            f"{a_document:>12.2f}{times:>11.2f}{len(learned.quarantined):>13}"
            f"{ends:>12}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
