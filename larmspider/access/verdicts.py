"""Which slots of a table a person may read. Each list is judged once for a person."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import NamedTuple

from larmspider.access.judge import may_enter, may_read
from larmspider.access.lists import Reader
from larmspider.access.table import BLOCKS, NOTHING, AccessTable, terms_of

MAX_PEOPLE = 256
"""People whose verdicts are remembered, the most recent ones."""
MAX_VERDICTS = 100_000
"""Verdicts of one person that are remembered."""


class _Person(NamedTuple):
    read: dict[int, bool]
    enter: dict[int, bool]


class Verdicts:
    """Judges people by a table. In any thread."""

    def __init__(self, table: AccessTable) -> None:
        self.table = table
        self._people: dict[Reader, _Person] = {}
        self._lock = threading.Lock()
        self._file: tuple[int, ...] = ()

    def may_see(self, name: str, reader: Reader) -> bool:
        """Whether a person may read a document, by access lists alone."""
        slot = self.table.slot_of(name)
        return slot is None or not self.hidden((slot,), reader)

    @property
    def _is_another(self) -> bool:
        """Whether another file has taken the place of the table, with other numbers."""
        before, self._file = self._file, self.table.version[:2]
        return before != self._file

    def hidden(self, slots: Iterable[int], reader: Reader) -> list[int]:
        """The slots that a person may not read. A slot that the table does not have yet is one."""
        person, folders = self._person(reader), dict[int, bool]()
        return [one for one in slots if not self._may_read(one, reader, person, folders)]

    def _may_read(
        self, number: int, reader: Reader, person: _Person, folders: dict[int, bool]
    ) -> bool:
        slot = self.table.slots.get(number)
        if slot is None or slot.list not in self.table.lists:
            return False
        found = person.read.get(slot.list)
        if found is None:
            found = person.read[slot.list] = may_read(self.table.lists[slot.list], reader)
        return found and self._may_enter(slot.above, reader, person, folders)

    def _may_enter(
        self, number: int, reader: Reader, person: _Person, folders: dict[int, bool]
    ) -> bool:
        chain = list[int]()
        allowed = True
        while number != NOTHING and allowed:
            if (known := folders.get(number)) is not None:
                allowed = known
                break
            chain.append(number)
            slot = self.table.slots.get(number)
            if slot is None or slot.list not in self.table.lists or len(chain) > 10_000:
                allowed = False
                break
            found = person.enter.get(slot.list)
            if found is None:
                found = person.enter[slot.list] = may_enter(self.table.lists[slot.list], reader)
            allowed, number = found, slot.above
        if allowed:
            folders.update(dict.fromkeys(chain, True))
        elif chain:
            folders[chain[0]] = False
        return allowed

    def _person(self, reader: Reader) -> _Person:
        """The verdicts so far: numbers of lists never change their meaning in one file."""
        with self._lock:
            if self._is_another:
                self._people.clear()
            found = self._people.pop(reader, None)
            if found is None or len(found.read) + len(found.enter) > MAX_VERDICTS:
                found = _Person({}, {})
            self._people[reader] = found
            while len(self._people) > MAX_PEOPLE:
                del self._people[next(iter(self._people))]
            return found


def covering(hidden: Collection[int], seen: Collection[int]) -> list[str]:
    """The fewest terms that cover all documents of ``hidden`` slots and no document of a ``seen``
    slot. A block without a seen slot is covered by one term."""
    mixed = [{slot // size for slot in seen} for size in BLOCKS]
    terms = dict[str, None]()
    for slot in hidden:
        own, *blocks = terms_of(slot)
        free = [term for term, size, some in zip(blocks, BLOCKS, mixed, strict=True)
                if slot // size not in some]  # fmt: skip
        terms[free[-1] if free else own] = None
    return list(terms)
