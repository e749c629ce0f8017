"""POSIX rights: mode bits and access ACLs, as the file system has them.

    rights = list_of(b"/srv/share/plan.odt")
    may(rights, READ, frozenset({"uid:1007", "gid:100"}))

The kernel's algorithm (acl(5)): the owner's entry, else a named user's, else the groups' entries,
else the entry of others; only entries of one of these four classes are looked at. Named entries and
groups are limited by the mask. If the mask is empty, Linux looks at no named entry at all.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from functools import lru_cache

from larmspider.access.lists import MAX_ENTRIES, POSIX, AccessList, Entry, Reader, UnreadableError

READ, ENTER = 4, 1
"""The bits of a file's r and of a folder's x."""
_ATTRIBUTE = "system.posix_acl_access"
_NONE = (errno.ENODATA, errno.EOPNOTSUPP)
_VERSION = 2
_ENTRY = struct.Struct("<HHI")
_TAGS = {1: "owner", 2: "user", 4: "owning-group", 8: "group", 16: "mask", 32: "other"}
_ROOT = "uid:0"


def list_of(path: bytes) -> AccessList:
    """The list of a file or folder; a symbolic link is not followed. Raises OSError, and
    UnreadableError for a damaged ACL."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise UnreadableError("a symbolic link has taken the place of the file")
    try:
        acl = os.getxattr(path, _ATTRIBUTE, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NONE:
            raise
        acl = b""
    except AttributeError:  # not Linux
        acl = b""
    return _list(found.st_mode & 0o777, found.st_uid, found.st_gid, acl)


@lru_cache(4_096)
def _list(mode: int, uid: int, gid: int, acl: bytes) -> AccessList:
    if not acl:
        return AccessList(
            POSIX,
            (
                ("owner", uid, mode >> 6 & 7),
                ("owning-group", gid, mode >> 3 & 7),
                ("other", 0, mode & 7),
            ),
        )
    if len(acl) < 4 or acl[:4] != struct.pack("<I", _VERSION) or (len(acl) - 4) % _ENTRY.size:
        raise UnreadableError("the ACL is not in the format of version 2")
    if (len(acl) - 4) // _ENTRY.size > MAX_ENTRIES:
        raise UnreadableError(f"the ACL has more than {MAX_ENTRIES:,} entries")
    ids = {"owner": uid, "owning-group": gid, "mask": 0, "other": 0}
    entries: list[Entry] = []
    for tag, bits, number in _ENTRY.iter_unpack(acl[4:]):
        name = _TAGS.get(tag)
        if name is None:
            raise UnreadableError(f"the ACL has an entry of the unknown type {tag}")
        entries.append((name, ids.get(name, number), bits & 7))
    if not {"owner", "owning-group", "other"} <= {entry[0] for entry in entries}:
        raise UnreadableError("the ACL has no entry for owner, group or others")
    return AccessList(POSIX, tuple(entries))


def may(rights: AccessList, bit: int, reader: Reader) -> bool:
    """Whether a person has the right ``bit``, which is `READ` or `ENTER`."""
    if _ROOT in reader:  # CAP_DAC_OVERRIDE
        return True
    mask = next((int(bits) for tag, _, bits in rights.entries if tag == "mask"), 7)
    others, grouped = 0, list[int]()
    named: int | None = None
    counted = ("owning-group", "group") if mask else ("owning-group",)
    for tag, number, bits in rights.entries:
        allowed = int(bits) & bit
        if tag == "owner":
            if f"uid:{number}" in reader:
                return bool(allowed)
        elif tag == "user":
            if mask and named is None and f"uid:{number}" in reader:
                named = allowed & mask
        elif tag in counted:
            if f"gid:{number}" in reader:
                grouped.append(allowed & mask)
        elif tag == "other":
            others = allowed
    if named is not None:
        return bool(named)
    return any(grouped) if grouped else bool(others)
