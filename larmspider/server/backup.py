"""A backup of a home: its crawls, their files and runs, without secrets (crawl/backup.py)."""

from __future__ import annotations

from pathlib import Path

from larmspider.crawl.backup import BackupFile, add_crawl, add_sqlite, size_of
from larmspider.crawl.state import RunState, State
from larmspider.server.audit import FILE as AUDIT
from larmspider.server.config.server_settings import FILE as SETTINGS
from larmspider.server.home import CRAWLS, DATA, ENDING, RUNS, Home
from larmspider.server.people.people import SEEN_FILE
from larmspider.server.people.principals import FILE as PRINCIPALS
from larmspider.server.people.tokens import FILE as TOKENS
from larmspider.server.people.users import FILE as USERS

_FILES = (
    SETTINGS, TOKENS, USERS, SEEN_FILE, PRINCIPALS, AUDIT, "told.json", "synonyms.txt",
    "best_bets.txt", "labels.txt",
)  # fmt: skip
_QUERIES = "queries.sqlite"


def expected_bytes(home: Home) -> int:
    return sum(size_of(home.path / folder) for folder in (CRAWLS, DATA, RUNS))


def add_home(out: BackupFile, home: Home) -> int:
    """Add a home, also while its server and crawls run; returns the number of crawls with data.

    secrets/, the one-time key and the key of the running server stay out. users.json and
    tokens.json have hashes.
    Raises as add_crawl() does.
    """
    for name in _FILES:
        if (home.path / name).is_file():
            out.add_small(name, home.path / name)
    if (home.path / _QUERIES).is_file():
        add_sqlite(out, _QUERIES, home.path / _QUERIES)
    for path in sorted((home.path / CRAWLS).glob(f"*{ENDING}")):
        out.add_small(f"{CRAWLS}/{path.name}", path)
    added = 0
    for name, entry in home.crawls().items():
        directory = home.directory_of(name, entry.crawl)
        if directory != home.path / DATA / name:
            out.notes.append(
                f"{name} lies outside of the home: larmspider backup {directory} FILE backs it up"
            )
        elif RunState.of(directory).state not in (State.NONE, State.EMPTY):
            add_crawl(out, directory, f"{DATA}/{name}/")
            added += 1
    for path in sorted((home.path / RUNS).glob("*/*")):
        if path.is_file() and not path.is_symlink() and path.suffix in (".log", ".json"):
            out.add_small(f"{RUNS}/{path.parent.name}/{path.name}", path)
    out.notes.append(f"{home.path / 'secrets'} is left out: copy it by itself")
    return added


def is_home(path: Path) -> bool:
    return (path / CRAWLS).is_dir()
