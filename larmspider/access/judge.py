"""Who may read by a list, and who may enter a folder or a share."""

from __future__ import annotations

from larmspider.access import nt, posix
from larmspider.access.lists import EVERYONE, NT, POSIX, AccessList, Reader


def may_read(rights: AccessList, reader: Reader) -> bool:
    if rights.kind == POSIX:
        return posix.may(rights, posix.READ, reader)
    if rights.kind == NT:
        return nt.may(rights, nt.READ_DATA, reader)
    return _simple(rights, reader)


def may_enter(rights: AccessList, reader: Reader) -> bool:
    """Whether a reader may pass through a folder. POSIX has a right for that. NT lets every user
    pass through folders; there the list is the share's list, which has to allow reading."""
    if rights.kind == POSIX:
        return posix.may(rights, posix.ENTER, reader)
    return may_read(rights, reader)


def _simple(rights: AccessList, reader: Reader) -> bool:
    return any(one[0] == EVERYONE or one[0] in reader for one in rights.entries)
