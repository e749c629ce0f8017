"""Debian's slapd with people and groups, unencrypted, with StartTLS and by ldaps, on free ports.

with Slapd() as server:
    server.settings["url"]                    # for ServerSettings
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from base64 import b64encode
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.support.servers.certificate import Authority
from tests.support.servers.processes import end, free_port, listens, wait_for

SUFFIX = "dc=corp,dc=example"
ADMIN, PASSWORD = f"cn=admin,{SUFFIX}", "admin-secret"
SID, GROUP_SID = "S-1-5-21-1-2-3-1105", "S-1-5-21-1-2-3-513"
MANY = 2_100
"""Groups of the person `many`."""
_CONFIGURATION = """
{schemas}
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile {ca}
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
pidfile {folder}/pid
database mdb
suffix "{suffix}"
rootdn "{admin}"
rootpw {password}
directory {folder}/data
sizelimit unlimited
index objectClass,member,uid,memberUid eq
access to attrs=userPassword by anonymous auth by * none
access to * by * read
"""


def _binary(sid: str) -> str:
    parts = [int(one) for one in sid.split("-")[2:]]
    packed = struct.pack("<BB", 1, len(parts) - 1) + parts[0].to_bytes(6, "big")
    return b64encode(packed + struct.pack(f"<{len(parts) - 1}I", *parts[1:])).decode()


def _entries() -> list[str]:
    people, groups = f"ou=people,{SUFFIX}", f"ou=groups,{SUFFIX}"
    found = [
        f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: Corp\ndc: corp",
        f"dn: {people}\nobjectClass: organizationalUnit\nou: people",
        f"dn: {groups}\nobjectClass: organizationalUnit\nou: groups",
        # a referral that leads to itself
        f"dn: ou=else,{people}\nobjectClass: referral\nobjectClass: extensibleObject\nou: else\n"
        f"ref: ldap://127.0.0.1:PORT/ou=else,{people}",
    ]
    for number, name in enumerate(("anna", "bob", "many", "eve*)(uid=*", "Zoë", "leaver")):
        encoded = b64encode(name.encode()).decode()
        found.append(
            f"dn: cn=person {number},{people}\nobjectClass: inetOrgPerson\n"
            f"objectClass: posixAccount\nobjectClass: extensibleObject\nuid:: {encoded}\n"
            f"sn: x\nuserPassword: secret of {number}\nuidNumber: {1007 + number}\n"
            f"gidNumber: 100\nhomeDirectory: /"
            + (f"\nobjectSid:: {_binary(SID)}\ntokenGroups:: {_binary(GROUP_SID)}" * (not number))
        )
    anna, bob, many = (f"cn=person {number},{people}" for number in range(3))
    for name, members in (
        ("hr", [anna]), ("leavers", [anna, f"cn=person 5,{people}"]),
        ("staff", [f"cn=hr,{groups}", bob]), ("all", [f"cn=staff,{groups}"]),
        ("round", [f"cn=again,{groups}", anna]), ("again", [f"cn=round,{groups}"]),
        ("Über, \\\\ uns", [bob]),
    ):  # fmt: skip
        plain = b64encode(name.replace("\\\\", "\\").encode()).decode()
        lines = "\n".join(f"member: {one}" for one in members)
        dn = b64encode(f"cn={name.replace(',', chr(92) + ',')},{groups}".encode()).decode()
        found.append(f"dn:: {dn}\nobjectClass: groupOfNames\ncn:: {plain}\n{lines}")
    found.append(
        f"dn: cn=devs,{groups}\nobjectClass: posixGroup\ncn: devs\ngidNumber: 2001\nmemberUid: anna"
    )
    found += [
        f"dn: cn=g{number},{groups}\nobjectClass: groupOfNames\ncn: g{number}\nmember: {many}"
        for number in range(MANY)
    ]
    return found


class Slapd:
    def __enter__(self) -> Self:
        program = shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin")
        if program is None:
            pytest.skip("not installed: Debian's slapd")
        self._temporary = tempfile.TemporaryDirectory(prefix="larm-slapd-")
        folder = Path(self._temporary.name)
        (folder / "data").mkdir()
        authority = Authority(folder)
        certificate, key = authority.issue("127.0.0.1")
        self.ca = authority.ca
        names = ("core", "cosine", "inetorgperson", "nis", "msuser")
        configuration = folder / "slapd.conf"
        configuration.write_text(_CONFIGURATION.format(
            schemas="\n".join(f"include /etc/ldap/schema/{name}.schema" for name in names),
            ca=self.ca, certificate=certificate, key=key, folder=folder, suffix=SUFFIX,
            admin=ADMIN, password=PASSWORD,
        ))  # fmt: skip
        self.port, self.tls_port = free_port("127.0.0.1"), free_port("127.0.0.1")
        entries = "\n\n".join(_entries()).replace("PORT", str(self.port))
        (folder / "entries.ldif").write_text(entries + "\n")
        common = ["-f", str(configuration)]
        filling = [str(Path(program).with_name("slapadd")), "-q", *common]
        subprocess.run(
            [*filling, "-l", str(folder / "entries.ldif")],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        addresses = f"ldap://127.0.0.1:{self.port} ldaps://127.0.0.1:{self.tls_port}"
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [program, *common, "-h", addresses, "-d", "0"],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_for(self.process, folder / "log", lambda: listens("127.0.0.1", self.tls_port))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end(self.process)
        self._temporary.cleanup()

    @property
    def settings(self) -> dict[str, Any]:
        """The table [ldap], by ldaps."""
        return {
            "url": f"ldaps://127.0.0.1:{self.tls_port}", "base": SUFFIX, "ca_file": str(self.ca),
            "user": ADMIN, "password": "ldap",
            "filter": "(&(objectClass=posixAccount)(uid={name}))",
            "name_attribute": "uid", "group_attribute": "cn",
        }  # fmt: skip

    def secret_in(self, home: Path) -> None:
        folder = home / "secrets"
        folder.mkdir(exist_ok=True)
        (folder / "ldap").write_text(f"hosts: 127.0.0.1:*\n{PASSWORD}\n")
        (folder / "ldap").chmod(0o600)
