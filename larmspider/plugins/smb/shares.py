"""Questions to a server about a share: its access list, and where a DFS path leads.

    list_of_share(link, "share")               # the permissions of the share, as Windows calls them
    referral(link, r"\\nas\\dfs\\plans")          # a Referral

The list comes by a remote call (MS-SRVS 3.1.4.10, NetrShareGetInfo, level 502), which
Windows and Samba answer administrators and server operators only.
"""

from __future__ import annotations

import struct
import time
from typing import NamedTuple
from uuid import UUID

from smbprotocol.dfs import DFSReferralRequest, DFSReferralResponse
from smbprotocol.exceptions import SMBException

from larmspider.access.lists import AccessList, UnreadableError
from larmspider.access.nt import of_bytes
from larmspider.plugins.smb.link import Link, StatusError
from larmspider.plugins.smb.messages import (
    FSCTL_DFS_GET_REFERRALS,
    FSCTL_PIPE_TRANSCEIVE,
    PIPE,
    Opened,
    close,
    create,
    ioctl,
)

_SRVSVC = (UUID("4b324fc8-1670-01d3-1278-5a47bf6ee188"), 3)
_NDR = (UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2)
_GET_INFO = 16
_LEVEL = 502
_FRAGMENT = 4_280  # bytes of a part of a call
_MOST = 65_536
_MOST_TARGETS = 8  # servers of one DFS link
_BUFFER_OVERFLOW = 0x80000005  # more of a message is waiting; a part of an answer is never larger


class Referral(NamedTuple):
    """``prefix`` of a path, in lower case with one backslash, leads to one of ``targets``, valid
    until a time of the monotonic clock. The first one is tried first."""

    prefix: str
    targets: tuple[str, ...]
    until: float

    @property
    def path_in_share(self) -> str:
        """The folder of a share to which the first target leads."""
        return "\\".join(self.targets[0].split("\\")[3:])


def referral(link: Link, path: str) -> Referral:
    """Raises StatusError, LostError."""
    request = DFSReferralRequest()
    request["request_file_name"] = path
    tree = link.tree("IPC$")
    (reply,) = link.ask(tree, [ioctl(FSCTL_DFS_GET_REFERRALS, request.pack(), 56 * 1024)])
    if reply.status:
        raise StatusError(reply.status)
    response = DFSReferralResponse()
    try:
        response.unpack(reply.output)
        entries = response["referral_entries"].get_value()[:_MOST_TARGETS]
        seconds = min(max(entries[0]["time_to_live"].get_value(), 60), 3_600)
        prefix = entries[0].dfs_path
        targets = tuple(_one_slash(one.network_address) for one in entries)
        if any(target.count("\\") < 2 for target in targets):
            raise ValueError(targets)
    except (IndexError, ValueError, SMBException):
        raise StatusError(0xC000026D) from None  # STATUS_DFS_EXIT_PATH_FOUND: no target
    return Referral(_one_slash(prefix).casefold(), targets, time.monotonic() + seconds)


def _one_slash(path: str) -> str:
    return "\\" + path.strip("\\")


def list_of_share(link: Link, share: str) -> AccessList:
    """Raises UnreadableError, StatusError, LostError."""
    tree = link.tree("IPC$")
    (reply,) = link.ask(tree, [create("srvsvc", PIPE)])
    if reply.status:
        raise StatusError(reply.status)
    pipe = Opened.of(reply).file
    try:
        _call(link, pipe, _bind())
        answer = _call(link, pipe, _request(share))
    finally:
        link.ask(tree, [close(pipe)])
    try:
        return _list_in(answer)
    except (struct.error, IndexError):
        raise UnreadableError("the server's answer about the share is damaged") from None


def _call(link: Link, pipe: bytes, data: bytes) -> bytes:
    tree = link.tree("IPC$")
    (reply,) = link.ask(tree, [ioctl(FSCTL_PIPE_TRANSCEIVE, data, _MOST, pipe)])
    if reply.status not in (0, _BUFFER_OVERFLOW):
        raise StatusError(reply.status)
    answer = reply.output
    kind = answer[2] if len(answer) > 24 else 0
    if kind not in (2, 12):  # response, bind_ack
        raise UnreadableError("the server refuses to say who may use the share")
    return answer


def _head(kind: int, number: int, size: int) -> bytes:
    return struct.pack("<BBBBIHHI", 5, 0, kind, 3, 0x10, size, 0, number)


def _bind() -> bytes:
    syntax = _SRVSVC[0].bytes_le + struct.pack("<HH", _SRVSVC[1], 0)
    transfer = _NDR[0].bytes_le + struct.pack("<I", _NDR[1])
    body = struct.pack("<HHIB3xHBx", _FRAGMENT, _FRAGMENT, 0, 1, 0, 1) + syntax + transfer
    return _head(11, 1, 16 + len(body)) + body


def _request(share: str) -> bytes:
    stub = struct.pack("<I", 0) + _string(share) + struct.pack("<I", _LEVEL)  # no server name
    body = struct.pack("<IHH", len(stub), 0, _GET_INFO) + stub
    return _head(0, 2, 16 + len(body)) + body


def _string(text: str) -> bytes:
    data = (text + "\0").encode("utf-16-le")
    letters = len(data) // 2
    return struct.pack("<III", letters, 0, letters) + data + bytes(-len(data) % 4)


def _list_in(answer: bytes) -> AccessList:
    """The descriptor in a SHARE_INFO_502."""
    stub = answer[24:]
    level, pointer = struct.unpack_from("<II", stub)
    if not pointer or level != _LEVEL:
        (code,) = struct.unpack_from("<I", stub, len(stub) - 4)
        raise UnreadableError(
            "the server does not say who may use the share"
            + (": the account may not ask" if code == 5 else f" (error {code})")
        )
    name, _, remark, _, _, _, path, password, length, security = struct.unpack_from("<10I", stub, 8)
    at = 48
    for text in (name, remark, path, password):
        if text:
            _, _, letters = struct.unpack_from("<III", stub, at)
            at += 12 + (2 * letters + 3) // 4 * 4
    if not security:
        raise UnreadableError("the server does not say who may use the share")  # as Samba does
    (size,) = struct.unpack_from("<I", stub, at)
    return of_bytes(stub[at + 4 : at + 4 + min(size, length)])
