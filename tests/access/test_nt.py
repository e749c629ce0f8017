"""The judge of NT descriptors, by a table of reasoned cases."""

from __future__ import annotations

import struct

import pytest

from larmspider.access import nt
from larmspider.access.judge import may_enter, may_read
from larmspider.access.lists import NT, AccessList, UnreadableError

_DOMAIN = "S-1-5-21-1-2-3"
ANNA, BEN, HR, STAFF = (f"{_DOMAIN}-{number}" for number in (1104, 1105, 2001, 2002))
_OF_ANNA = frozenset({"everyone", "authenticated", f"sid:{ANNA}", f"sid:{HR}", f"sid:{STAFF}"})
_OF_BEN = frozenset({"everyone", "authenticated", f"sid:{BEN}", f"sid:{STAFF}"})
_NOBODY_KNOWN = frozenset({"everyone"})

_CASES = [
    # descriptor, Anna, Ben, a person whom nothing knows; why
    ("O:BAG:SY", (1, 1, 1), "no DACL admits everybody"),
    ("O:BAD:NO_ACCESS_CONTROL", (1, 1, 1), "a null DACL, too"),
    ("O:BAD:", (0, 0, 0), "an empty DACL admits nobody"),
    ("D:(A;;FA;;;WD)", (1, 1, 1), "Everyone"),
    ("D:(A;;FA;;;AU)", (1, 1, 0), "Authenticated Users"),
    ("D:(A;;FA;;;BU)", (1, 1, 0), "authenticated people are Users"),
    ("D:(A;;FR;;;{HR})", (1, 0, 0), "a group"),
    ("D:(A;;GR;;;{HR})", (1, 0, 0), "generic rights are mapped"),
    ("D:(A;;GA;;;{HR})", (1, 0, 0), ""),
    ("D:(A;;0x80000000;;;{HR})", (1, 0, 0), "also as a number"),
    ("D:(A;;FW;;;{HR})", (0, 0, 0), "writing is not reading"),
    ("D:(A;;GX;;;{HR})", (0, 0, 0), "nor is executing"),
    ("D:(A;;CC;;;{HR})", (1, 0, 0), "the bit of reading data"),
    ("D:(D;;FR;;;{BEN})(A;;FA;;;{STAFF})", (1, 0, 0), "a deny that stands first"),
    ("D:(A;;FA;;;{STAFF})(D;;FR;;;{BEN})", (1, 1, 0), "the order of the list counts"),
    ("D:(A;;FR;;;{BEN})(D;ID;FR;;;{STAFF})", (0, 1, 0), "explicit allow, inherited deny"),
    ("D:(D;;FW;;;{STAFF})(A;;FA;;;{STAFF})", (1, 1, 0), "a deny of writing denies no reading"),
    ("D:(D;IO;FR;;;{STAFF})(A;;FA;;;{STAFF})", (1, 1, 0), "an entry for inheritance alone"),
    ("D:(A;OICIIO;FA;;;{STAFF})", (0, 0, 0), ""),
    ("D:(A;OICI;FA;;;{STAFF})", (1, 1, 0), "an entry that is also inherited"),
    ("D:(D;;FA;;;WD)(A;;FA;;;{HR})", (0, 0, 0), "nobody is let through"),
    ("D:(D;;FA;;;AN)(A;;FA;;;WD)", (1, 1, 1), ""),
    ("D:(A;;FA;;;CO)", (0, 0, 0), "CREATOR OWNER stands for nobody"),
    ("O:{ANNA}D:(A;;FA;;;CO)", (0, 0, 0), "not for the owner either"),
    ("O:{ANNA}D:(A;;FW;;;{HR})", (0, 0, 0), "the owner may change the list, and not read"),
    ("O:{ANNA}D:(A;;FR;;;OW)", (1, 0, 0), "OWNER RIGHTS"),
    ("O:{ANNA}D:(D;;FR;;;OW)(A;;FA;;;{STAFF})", (0, 1, 0), ""),
    ('D:(XA;;FA;;;{HR};(@User.Title=="PM" && (Member_of {SID(BA)})))', (0, 0, 0), "condition"),
    ('D:(XD;;FA;;;{HR};(@User.Title=="PM"))(A;;FA;;;{STAFF})', (0, 1, 0), "taken for true"),
    ("O:BAG:BAD:PAI(A;;FR;;;{HR})S:(AU;SAFA;FA;;;WD)", (1, 0, 0), "an audit entry is none"),
]  # fmt: skip


def _filled(sddl: str) -> str:
    for name, sid in (("ANNA", ANNA), ("BEN", BEN), ("HR", HR), ("STAFF", STAFF)):
        sddl = sddl.replace(f"{{{name}}}", sid)
    return sddl


@pytest.mark.parametrize(("sddl", "expected", "_why"), _CASES)
def test_who_may_read(sddl: str, expected: tuple[int, ...], _why: str) -> None:
    rights = nt.of_sddl(_filled(sddl))
    found = tuple(int(may_read(rights, one)) for one in (_OF_ANNA, _OF_BEN, _NOBODY_KNOWN))
    assert found == expected
    assert AccessList.unpack(rights.pack()) == rights


@pytest.mark.parametrize("sddl", [sddl for sddl, *_ in _CASES if "X" not in sddl])
def test_the_binary_form_means_the_same(sddl: str) -> None:
    """Except for conditions, which have a binary form of their own."""
    rights = nt.of_sddl(_filled(sddl))
    again = nt.of_bytes(_binary(rights))
    assert again == rights


def test_the_owner_may_read_and_change_the_list() -> None:
    rights = nt.of_sddl(_filled("O:{ANNA}D:"))
    assert nt.may(rights, nt.READ_CONTROL | nt.WRITE_DAC, _OF_ANNA)
    assert not nt.may(rights, nt.READ_CONTROL, _OF_BEN)
    limited = nt.of_sddl(_filled("O:{ANNA}D:(A;;FR;;;OW)"))
    assert not nt.may(limited, nt.WRITE_DAC, _OF_ANNA)


def test_a_share_has_a_list_of_its_own() -> None:
    share = nt.of_sddl(_filled("D:(A;;FR;;;{HR})"))
    assert may_enter(share, _OF_ANNA)
    assert not may_enter(share, _OF_BEN)


@pytest.mark.parametrize(
    "sddl",
    ["", "nonsense", "D:(A;;FA;;;DA)", "D:(A;;QQ;;;WD)", "D:(A;ZZ;FA;;;WD)", "D:(?;;FA;;;WD)",
     "D:(A;;FA;;;WD", "D:(A;;FA;;;WD)x", "D:x(A;;FA;;;WD)", "D:(A;;FA;;;WD)D:(A;;FA;;;WD)",
     "D:(A;;FA)", "O:D:(A;;FA;;;WD)", "D:(A;;0xzz;;;WD)", "D:" + "(A;;FA;;;WD)" * 6_000,
     "S-1-5-32", "D:(A;;FA;;;S-1-99999999999999)"],
)  # fmt: skip
def test_what_cannot_be_parsed_is_refused(sddl: str) -> None:
    with pytest.raises(UnreadableError):
        nt.of_sddl(sddl)


def test_a_cut_off_descriptor_is_refused() -> None:
    whole = _binary(nt.of_sddl(_filled("O:{ANNA}D:(A;;FR;;;{HR})(D;;FR;;;{BEN})")))
    for end in range(len(whole)):
        with pytest.raises(UnreadableError):
            nt.of_bytes(whole[:end])
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        try:
            nt.of_bytes(bytes(changed))
        except UnreadableError:
            continue


def _sid(text: str) -> bytes:
    _, _, authority, *parts = text.split("-")
    return struct.pack("<BB", 1, len(parts)) + int(authority, 0).to_bytes(6, "big") + struct.pack(
        f"<{len(parts)}I", *map(int, parts)
    )  # fmt: skip


def _binary(rights: AccessList) -> bytes:
    assert rights.kind == NT
    owner, aces = b"", []
    for entry in rights.entries:
        if entry[0] == "owner":
            owner = _sid(str(entry[1]))
        elif entry[0] != "null":
            kind, sid, flags, named = entry
            body = _sid(str(sid))
            aces.append(struct.pack("<BBHI", kind == "deny", flags, 8 + len(body), named) + body)
    acl = b"".join(aces)
    dacl = struct.pack("<BBHHH", 2, 0, 8 + len(acl), len(aces), 0) + acl
    is_null = ("null",) in rights.entries
    header = struct.pack(
        "<BBHIIII", 1, 0, 0x8000 | (0 if is_null else 4), 20 + len(dacl) if owner else 0, 0, 0,
        0 if is_null else 20,
    )  # fmt: skip
    return header + dacl + owner
