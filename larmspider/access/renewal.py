"""The pass over metadata: rights that changed, without reading a document again.

    renewed = renew(table, sources, names)              # rules, and files
    renewed = renew_connected(table, sources, names)    # documents of connectors
    renewed.files, renewed.rows, renewed.silent

If all documents of a slot have the same new list, the slot's row changes. Documents that differ
from the others of their slot get another slot, and are written to the index again.
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from larmspider.access.connected import AwayError, RightsReader
from larmspider.access.file_rights import files_of
from larmspider.access.lists import AccessList, UnreadableError
from larmspider.access.rights import UNREADABLE, Checked, Rights
from larmspider.access.rules import slot_name
from larmspider.access.sources import Sources
from larmspider.access.table import NO_SLOT, AccessWriter, Slot
from larmspider.urls.file_urls import is_file
from larmspider.urls.schemes import CONNECTED

_DAMAGED = (ValueError, LookupError, TypeError, struct.error)  # what parsers raise


@dataclass
class Renewed:
    """``files``: the number of checked files. ``seconds``: the CPU time of the checks. ``rows``:
    changed rows of the table. ``moved``: documents with another slot. ``unread``: files whose
    rights cannot be read. ``replaced``: files hidden because a file with other rights has their
    name. ``unmounted``: missing roots. ``silent``: documents whose link texts may
    no longer be indexed for other pages."""

    files: int = 0
    seconds: float = 0.0
    rows: int = 0
    moved: int = 0
    unread: int = 0
    replaced: int = 0
    unmounted: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)

    @property
    def per_second(self) -> int:
        return round(self.files / self.seconds) if self.seconds else 0


def renew(
    table: AccessWriter,
    sources: Sources,
    names_of: Callable[[str], Iterable[str]],
    stop: Callable[[], bool] = lambda: False,
) -> Renewed:
    """Bring a table up to date, except for documents of connectors. ``names_of`` gives the
    documents of the index that begin with a text. Ends early, between two files, once ``stop``
    returns True."""
    renewed, began = Renewed(), time.thread_time()
    _renew_rules(table, sources, names_of, renewed)
    for name, rights in sources.pushed.lists():
        if table.slot_of(name) is None:  # the index was lost, and is rebuilt
            table.give(name, rights)
    if sources.has_files:
        _renew_source(table, sources, names_of("file:"), sources.files, renewed, stop)
    renewed.seconds = time.thread_time() - began
    return renewed


def renew_connected(
    table: AccessWriter,
    sources: Sources,
    names_of: Callable[[str], Iterable[str]],
    stop: Callable[[], bool] = lambda: False,
) -> Renewed:
    """As `renew`, for documents of connectors: servers may take long to answer."""
    renewed, began = Renewed(), time.thread_time()
    for scheme in CONNECTED:
        names = [*names_of(f"{scheme}:")]
        reader = sources.connected.reader_of(scheme) if names else None
        if reader is not None:
            _renew_source(table, sources, names, reader, renewed, stop)
    renewed.seconds = time.thread_time() - began
    return renewed


def _renew_rules(
    table: AccessWriter, sources: Sources, names_of: Callable[[str], Iterable[str]], said: Renewed
) -> None:
    """Take the rules and hosts of the settings, and look at all documents if these differ."""
    rules, sent = sources.rules, sources.sent
    if (rules.patterns, sent.hosts) == (table.patterns, table.hosts) and not any(
        _opens_or_shuts(table, pattern, rights.is_for_everyone) for pattern, rights in rules.lists
    ):
        _put_rules(table, sources, said)
        return
    before = {name: table.slot_of(name) for name in names_of("")}
    by_rule = {slot for slot in before.values() if slot and table.is_by_rule(slot)}
    _put_rules(table, sources, said)
    table.set_rules(rules.patterns, sent.hosts)
    moved = [name for name, slot in before.items() if table.slot_of(name) != slot]
    table.mark_moved(moved)
    said.moved += len(moved)
    said.silent += [name for name in moved if before[name] is None]
    said.silent += [name for name, slot in before.items() if slot in by_rule]


def _opens_or_shuts(table: AccessWriter, pattern: str, is_for_everyone: bool) -> bool:
    slot = table.names.get(slot_name(pattern))
    return slot is None or table.list_of(slot).is_for_everyone != is_for_everyone


def _put_rules(table: AccessWriter, sources: Sources, said: Renewed) -> None:
    for pattern, rights in sources.rules.lists:
        slot = table.names.get(slot_name(pattern))
        said.rows += slot is not None and table.list_of(slot) != rights
        table.put(slot_name(pattern), rights)


def _renew_source(
    table: AccessWriter,
    sources: Sources,
    names: Iterable[str],
    reader: RightsReader,
    said: Renewed,
    stop: Callable[[], bool],
) -> None:
    folders, mounted = defaultdict[str, list[str]](list), dict[str, bool]()
    roots = dict[str, str | None]()
    for name in names:
        if sources.rules.number_of(name) is not None:
            continue
        root = reader.root_of(name)
        if root is not None and root not in mounted:
            if stop():
                return
            mounted[root] = _is_mounted(reader, root)
        if table.slot_of(name) == NO_SLOT:
            table.assign(name, NO_SLOT)
        if root is None or mounted[root]:
            folder = name.rpartition("/")[0] + "/"
            folders[folder].append(name)
            roots[folder] = root
    said.unmounted += [root for root, is_there in mounted.items() if not is_there]
    away = set[str]()  # roots, and folders with all that lies in them
    changed = set[int]()
    reader.known = {}
    try:
        for folder, inside in folders.items():
            if roots[folder] in away or folder.startswith(tuple(away)):
                continue
            before = {name: table.slot_of(name) for name in inside}
            try:
                above, found = _read(reader, folder, inside, stop)
            except AwayError as error:
                below = error.below or roots[folder] or folder
                away.add(below)
                said.unmounted.append(f"{below} ({error})")
                continue
            if stop():
                return
            with table.changing():
                # a document that was fetched meanwhile has newer rights
                found = [one for one in found if table.slot_of(one.name) == before[one.name]]
                _renew_folder(table, sources, above, found, said, changed)
            said.files += len(inside)
    finally:
        reader.known = None


def _is_mounted(reader: RightsReader, root: str) -> bool:
    try:
        return reader.is_mounted(root)
    except (OSError, *_DAMAGED):
        return False


def _read(
    reader: RightsReader, folder: str, names: list[str], stop: Callable[[], bool]
) -> tuple[list[tuple[str, AccessList]], list[Checked]]:
    """The folders and shares above a folder, and the lists of its documents; not of all documents
    once ``stop`` returns True. Raises AwayError."""
    try:
        above, found = reader.above(folder), list[Checked]()
        for one in reader.files(folder, names):
            found.append(one)
            if stop():
                break
        return above, found
    except UnreadableError as error:
        why = str(error)
    except OSError as error:
        raise AwayError(error.strerror or str(error) or type(error).__name__) from None
    except _DAMAGED as error:
        why = f"a damaged answer: {type(error).__name__}: {error}"
    return [], [Checked(name, UNREADABLE.list, why) for name in names]


def _renew_folder(
    table: AccessWriter,
    sources: Sources,
    above: list[tuple[str, AccessList]],
    found: list[Checked],
    said: Renewed,
    changed: set[int],
) -> None:
    """``changed``: slots of folders whose lists changed in this pass."""
    rows = [table.slots.get(table.names.get(f"in {name}", -1)) for name, _ in above]
    place = table.enter(above)
    numbers = [table.names[f"in {name}"] for name, _ in above]
    others = {
        number
        for row, number in zip(rows, numbers, strict=True)
        if row is not None and row != table.slots[number]
    }
    said.rows += len(others)
    changed |= others
    is_elsewhere = not changed.isdisjoint(numbers)
    members = defaultdict[int, dict[int, list[str]]](lambda: defaultdict(list))
    for name, rights, why, mark in found:
        slot, number = table.slot_of(name) or NO_SLOT, table.number_of(rights)
        if why:
            sources.failed(name, why)
            said.unread += 1
        elif table.is_replaced(name, mark):
            row = table.slots[slot]
            as_before = row.list == number and not (above and row.above != place)
            if slot == NO_SLOT or is_elsewhere or not as_before:
                # the index has the text of the old file, and these are the rights of the new one
                said.moved += table.assign(name, NO_SLOT)
                said.replaced += 1
                continue
        members[slot][number].append(name)
    for slot, by_list in members.items():
        row = table.slots[slot]
        here = place if above else row.above
        (name, *_), *_ = by_list.values()
        if slot != NO_SLOT and len(by_list) == 1 and _is_of_folder(row, name):
            (number,) = by_list
            if row != Slot(here, number, row.name):
                table.replace(slot, here, number)
                said.rows += 1
            continue
        for number, some in by_list.items():
            if slot != NO_SLOT and row[:2] == (here, number):
                continue
            given = Rights(table.lists[number], files_of(some[0]), above) if number else UNREADABLE
            for name in some:
                said.moved += table.give(name, given)


def _is_of_folder(row: Slot, name: str) -> bool:
    """Whether only documents in the folder of ``name`` have this slot. On a share, documents of
    several folders with the same list have one slot, if their folders' own slots have others. Slots
    of files are below the slot of their folder."""
    return bool(row.name) or is_file(name)
