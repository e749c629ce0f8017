"""Mends WARC files: records that are lost, and CDXJ.

blank(path, {81_264: 1_204})     # an empty record in place of one that cannot be read
index_anew(path)                 # the CDXJ, by the records
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from larmspider.files import replace_file, sync_file
from larmspider.plugins.warc.pipeline import cdxj_of, filler
from larmspider.plugins.warc.records import Record, cdxj_line
from larmspider.plugins.warc.verify import Member, members_of

DAMAGED = ".damaged"
"""Ends the name of the copy of a file as it was before an empty record was put into it."""
_OTHER = "application/octet-stream"


def blank(path: Path, spans: Mapping[int, int]) -> None:
    """Put a record of type warcinfo over each span, given by its first byte and its size. A span
    that is too short for one takes the next record along. The file stays beside as NAME.damaged."""
    copy = path.with_name(path.name + DAMAGED)
    if not copy.exists():
        draft = path.with_name(f"{copy.name}.new")
        shutil.copyfile(path, draft)
        sync_file(draft)
        draft.replace(copy)
    sizes = {one.at: one.size for one in members_of(path, path.stat().st_size, spans, _nobody)}
    done = 0
    with path.open("r+b") as file:
        for at, size in sorted(spans.items()):
            if at < done:
                continue
            end = at + size
            while (record := filler(path.name, end - at)) is None and end in sizes:
                end += sizes[end]
            if record is not None:
                file.seek(at)
                file.writelines(record)
                done = end
    sync_file(path)


def index_anew(path: Path) -> None:
    """Write the CDXJ of a WARC file by its records."""
    if path.exists():
        lines = sorted(_lines(path))
        replace_file(cdxj_of(path), "".join(lines).encode())


def _lines(path: Path) -> Iterator[str]:
    for member in members_of(path, path.stat().st_size, (), _nobody):
        if not member.fault and member.payload:
            head = member.head
            fields = {"mime": _mime(member), "status": _status(member)}
            record = Record(b"", member.url, head.get("warc-date", ""), member.payload, fields)
            yield cdxj_line(record, path.name, member.at, member.size)


def _mime(member: Member) -> str:
    if member.head["warc-type"] == "revisit":
        return "warc/revisit"
    said = member.head.get("content-type", "")
    if member.head["warc-type"] == "response":
        said = ""
        for line in member.block.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            said = value if name.strip().lower() == "content-type" else said
    return said.partition(";")[0].strip().lower() or _OTHER


def _status(member: Member) -> str:
    if member.head["warc-type"] == "resource":
        return "200"
    words = member.block[:64].split(None, 2)
    return words[1].decode("ascii", "replace") if len(words) > 1 else "0"


def _nobody(_what: str, _done: int, _total: int) -> None:
    """Progress that is not shown."""
