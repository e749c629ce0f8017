"""Reads WARC files as others do: warcio, with its check of digests, and FastWARC."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker


def check(path: Path) -> int:
    """`warcio check` finds nothing, and FastWARC reads the same number of records, which it
    returns."""
    said = io.StringIO()
    command = SimpleNamespace(inputs=[str(path)], verbose=True)
    with redirect_stdout(said):
        checker = Checker(command)
        checker.process_all()
    assert not checker.exit_value, said.getvalue()
    with path.open("rb") as file:
        ids = [one.rec_headers.get_header("WARC-Record-ID") for one in ArchiveIterator(file)]
    assert [record.record_id for record in FastIterator(str(path), parse_http=True)] == ids
    assert len(set(ids)) == len(ids)
    return len(ids)


def pages_in(*paths: Path) -> dict[str, bytes]:
    """The bodies, by URL; a revisit has its original's body."""
    bodies: dict[str, bytes] = {}
    for path in paths:
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                head = record.rec_headers.get_header
                url = head("WARC-Target-URI")
                if record.rec_type in ("response", "resource"):
                    assert url not in bodies
                    bodies[url] = record.content_stream().read()
                elif record.rec_type == "revisit":
                    bodies[url] = bodies[head("WARC-Refers-To-Target-URI")]
    return bodies
