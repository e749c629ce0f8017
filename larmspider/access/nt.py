"""NT security descriptors, as SDDL or in binary, and who may read by them.

    rights = of_sddl("O:BAG:SYD:PAI(D;;FR;;;S-1-5-21-1-2-3-1105)(A;;FA;;;AU)")
    may(rights, READ_DATA, frozenset({"authenticated", "sid:S-1-5-21-1-2-3-1104"}))

Windows' algorithm (MS-DTYP 2.5.3.2): the entries of the DACL in their own order; the first entry
that names a right of this person decides it. A missing DACL admits everybody, an empty
DACL admits no person. Entries that are only for inheritance do not count. The owner may read and
change the list, unless an entry for OWNER RIGHTS says otherwise; this does not open the content.
"""

from __future__ import annotations

import re
import struct

from larmspider.access.lists import (
    AUTHENTICATED,
    EVERYONE,
    MAX_ENTRIES,
    NT,
    AccessList,
    Entry,
    Reader,
    UnreadableError,
)

READ_DATA = 0x1
"""The right that opens the content of a file, and the list of a folder."""
READ_CONTROL, WRITE_DAC = 0x20000, 0x40000
ALL, READ, WRITE, EXECUTE = 0x1F01FF, 0x120089, 0x120116, 0x1200A0
"""FILE_ALL_ACCESS, FILE_GENERIC_READ, ..."""
_GENERIC = {0x80000000: READ, 0x40000000: WRITE, 0x20000000: EXECUTE, 0x10000000: ALL}
INHERIT_ONLY = 0x08
_OWNER_RIGHTS = "S-1-3-4"
_LARGEST = 65_536  # bytes of a descriptor: a DACL has at most 64 KB

# entries with a condition, or of an object type: their allow is not believed, their deny is
_ALLOW, _DENY, _IGNORED = {0}, {1, 6, 10, 12}, {2, 3, 5, 7, 8, 9, 11, 13, 14, 15, 16}
_OBJECT, _OBJECT_CALLBACK = {5, 6, 7, 8}, {11, 12, 15, 16}
_TYPES = {"A": 0, "D": 1, "OA": 5, "OD": 6, "XA": 9, "XD": 10, "ZA": 11, "AU": 2, "OU": 7}

_WELL_KNOWN = {
    EVERYONE: ("S-1-1-0",),
    # a person with a name comes over the network, and Windows makes this person one of the Users
    AUTHENTICATED: ("S-1-5-11", "S-1-5-2", "S-1-5-32-545"),
}
_ALIASES = {
    "WD": "S-1-1-0", "CO": "S-1-3-0", "CG": "S-1-3-1", "OW": "S-1-3-4", "NU": "S-1-5-2",
    "IU": "S-1-5-4", "SU": "S-1-5-6", "AN": "S-1-5-7", "ED": "S-1-5-9", "PS": "S-1-5-10",
    "AU": "S-1-5-11", "RC": "S-1-5-12", "SY": "S-1-5-18", "LS": "S-1-5-19", "NS": "S-1-5-20",
    "BA": "S-1-5-32-544", "BU": "S-1-5-32-545", "BG": "S-1-5-32-546", "PU": "S-1-5-32-547",
    "AO": "S-1-5-32-548", "SO": "S-1-5-32-549", "PO": "S-1-5-32-550", "BO": "S-1-5-32-551",
    "RE": "S-1-5-32-552", "AC": "S-1-15-2-1", "LW": "S-1-16-4096", "ME": "S-1-16-8192",
    "HI": "S-1-16-12288", "SI": "S-1-16-16384",
}  # fmt: skip
"""Aliases of SDDL without a domain. DA, DU and others mean nothing without knowing the domain."""
_RIGHTS = {
    "GA": 0x10000000, "GR": 0x80000000, "GW": 0x40000000, "GX": 0x20000000, "RC": 0x20000,
    "SD": 0x10000, "WD": 0x40000, "WO": 0x80000, "FA": ALL, "FR": READ, "FW": WRITE,
    "FX": EXECUTE, "CC": 1, "DC": 2, "LC": 4, "SW": 8, "RP": 16, "WP": 32, "DT": 64, "LO": 128,
    "CR": 256,
}  # fmt: skip
_FLAGS = {"OI": 1, "CI": 2, "NP": 4, "IO": 8, "ID": 16, "SA": 64, "FA": 128}
_SID = re.compile(r"S-1-(?:\d{1,10}|0x[0-9A-Fa-f]{1,12})(?:-\d{1,10}){1,15}")
_SECTION = re.compile(r"([OGDS]):")


def of_sddl(text: str) -> AccessList:
    """Raises UnreadableError."""
    if len(text) > _LARGEST:
        raise UnreadableError(f"the descriptor has more than {_LARGEST:,} characters")
    parts = _sections(text.strip())
    entries: list[Entry] = []
    if "O" in parts:
        entries.append(("owner", _sid(parts["O"])))
    dacl = parts.get("D")
    if dacl is None or "NO_ACCESS_CONTROL" in dacl.partition("(")[0]:
        return AccessList(NT, (*entries, ("null",)))
    flags, mark, aces = dacl.partition("(")
    if not re.fullmatch(r"(?:P|AI|AR)*", flags):
        raise UnreadableError(f"the descriptor has unknown flags {flags!r:.20}")
    for found in _entries(mark + aces):
        kind, inherit, rights, _object, _other, sid, *_ = [*found.split(";", 6), "", "", "", "", ""]
        if kind not in _TYPES:
            raise UnreadableError(f"the descriptor has an entry of the unknown type {kind!r:.20}")
        _add(entries, _TYPES[kind], _flags(inherit), _rights(rights), _sid(sid))
    return AccessList(NT, tuple(entries))


def of_bytes(data: bytes) -> AccessList:
    """A self-relative descriptor (MS-DTYP 2.4.6). Raises UnreadableError."""
    if len(data) > _LARGEST:
        raise UnreadableError(f"the descriptor has more than {_LARGEST:,} bytes")
    try:
        revision, _, control, owner, _group, _sacl, dacl = struct.unpack_from("<BBHIIII", data)
        if revision != 1 or not control & 0x8000:
            raise UnreadableError("the descriptor is not a self-relative one of revision 1")
        entries: list[Entry] = [("owner", _sid_at(data, owner)[0])] if owner else []
        if not control & 0x4 or not dacl:
            return AccessList(NT, (*entries, ("null",)))
        revision, _, size, number, _ = struct.unpack_from("<BBHHH", data, dacl)
        at, end = dacl + 8, dacl + size
        if revision not in (2, 3, 4) or end > len(data) or number > MAX_ENTRIES:
            raise UnreadableError("the descriptor has a damaged DACL")
        for _ in range(number):
            kind, flags, size = struct.unpack_from("<BBH", data, at)
            if size < 16 or at + size > end:
                raise UnreadableError("the descriptor has a damaged entry")
            if kind not in _ALLOW | _DENY | _IGNORED:
                raise UnreadableError(f"the descriptor has an entry of the unknown type {kind}")
            (rights,) = struct.unpack_from("<I", data, at + 4)
            start = at + 8
            if kind in _OBJECT | _OBJECT_CALLBACK:
                (present,) = struct.unpack_from("<I", data, start)
                start += 4 + 16 * (present & 3).bit_count()
            sid, behind = _sid_at(data, start)
            if behind > at + size:
                raise UnreadableError("the descriptor has a damaged entry")
            _add(entries, kind, flags, rights, sid)
            at += size
    except struct.error:
        raise UnreadableError("the descriptor is cut off") from None
    return AccessList(NT, tuple(entries))


def may(rights: AccessList, wanted: int, reader: Reader) -> bool:
    """Whether a person has all ``wanted`` rights."""
    sids = {one.removeprefix("sid:") for one in reader if one.startswith("sid:")}
    for principal, known in _WELL_KNOWN.items():
        if principal in reader or principal == EVERYONE:
            sids.update(known)
    entries = rights.entries
    owner = next((entry[1] for entry in entries if entry[0] == "owner"), None)
    if owner in sids:
        sids.add(_OWNER_RIGHTS)
        if not any(
            entry[0] in ("allow", "deny") and entry[1] == _OWNER_RIGHTS for entry in entries
        ):
            wanted &= ~(READ_CONTROL | WRITE_DAC)
    if ("null",) in entries:
        return True
    for entry in entries:
        if not wanted:
            break
        if entry[0] not in ("allow", "deny") or entry[1] not in sids:
            continue
        _, _, flags, named = entry
        if int(flags) & INHERIT_ONLY:
            continue
        if entry[0] == "allow":
            wanted &= ~int(named)
        elif wanted & int(named):
            return False
    return not wanted


def _add(entries: list[Entry], kind: int, flags: int, rights: int, sid: str) -> None:
    if len(entries) >= MAX_ENTRIES:
        raise UnreadableError(f"the descriptor has more than {MAX_ENTRIES:,} entries")
    for generic, meant in _GENERIC.items():
        if rights & generic:
            rights = rights & ~generic | meant
    if kind in _ALLOW:
        entries.append(("allow", sid, flags, rights))
    elif kind in _DENY:
        entries.append(("deny", sid, flags, rights))


def _sections(text: str) -> dict[str, str]:
    """The parts by their letters."""
    found: dict[str, str] = {}
    outside = list(text)
    for start, end in _brackets(text):
        outside[start:end] = "\0" * (end - start)
    marks = [*_SECTION.finditer("".join(outside))]
    if not marks or marks[0].start():
        raise UnreadableError("the descriptor is not SDDL")
    for mark, end in zip(marks, [*(one.start() for one in marks[1:]), len(text)], strict=True):
        if mark[1] in found:
            raise UnreadableError(f"the descriptor has two parts {mark[1]}:")
        found[mark[1]] = text[mark.end() : end]
    return found


def _entries(text: str) -> list[str]:
    """The entries, without their brackets; nothing stands between them."""
    spans = _brackets(text)
    if sum(end - start for start, end in spans) != len(text):
        raise UnreadableError("the descriptor has text between its entries")
    return [text[start + 1 : end - 1] for start, end in spans]


def _brackets(text: str) -> list[tuple[int, int]]:
    """The beginning and end of the outer brackets. A condition may have brackets and texts in
    quotes."""
    found, depth, begin, quoted = list[tuple[int, int]](), 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter == "(":
            begin = begin if depth else at
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth < 0:
                break
            if not depth:
                found.append((begin, at + 1))
    if depth or quoted:
        raise UnreadableError("the descriptor has a bracket too much")
    return found


def _sid(text: str) -> str:
    found = _ALIASES.get(text, text)
    if not _SID.fullmatch(found):
        raise UnreadableError(f"{text!r:.80} is not an SID that is known without its domain")
    return found


def _flags(text: str) -> int:
    return sum({_named(_FLAGS, text[at : at + 2]) for at in range(0, len(text), 2)})


def _rights(text: str) -> int:
    if text[:2].lower() == "0x" or text.isdecimal():
        try:
            return int(text, 0) & 0xFFFFFFFF
        except ValueError:
            raise UnreadableError(f"{text!r:.20} is not a number for rights") from None
    found = 0
    for at in range(0, len(text), 2):
        found |= _named(_RIGHTS, text[at : at + 2])
    return found


def _named(known: dict[str, int], name: str) -> int:
    try:
        return known[name]
    except KeyError:
        raise UnreadableError(f"the descriptor has an unknown word {name!r:.20}") from None


def _sid_at(data: bytes, at: int) -> tuple[str, int]:
    """A SID, and where it ends. Raises struct.error beyond the end."""
    revision, number = struct.unpack_from("<BB", data, at)
    if revision != 1 or not 0 < number <= 15:
        raise UnreadableError("the descriptor has a damaged SID")
    authority = int.from_bytes(data[at + 2 : at + 8], "big")
    parts = struct.unpack_from(f"<{number}I", data, at + 8)
    named = str(authority) if authority < 1 << 32 else f"{authority:#x}"
    return "-".join(("S-1", named, *map(str, parts))), at + 8 + 4 * number
