"""A session with an SMB server: signed and encrypted, one connection for all threads.

    link = Link("nas", 445, Account("ntlm", "LAB\\\\crawler", "secret"))
    tree = link.tree("share")
    link.ask(tree, [create("a.odt", READ_FILE), read(0, 65_536), close()])     # a Reply each

smbprotocol negotiates, signs in and connects to shares. The messages that a crawl sends most are
made here (messages.py), and their answers are taken before smbprotocol reads them.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import aead
from smbprotocol.connection import Ciphers, Connection, Dialects
from smbprotocol.exceptions import SMBConnectionClosed, SMBException, SMBResponseException
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from larmspider.fetch import errors
from larmspider.plugins.smb.messages import (
    CREATE,
    DFS_PATH,
    HEADER,
    IS_ASYNC,
    MAGIC,
    RELATED,
    SIGNED,
    Message,
    Reply,
)

logging.getLogger("smbprotocol").setLevel(logging.CRITICAL)  # its errors are raised here

PENDING = 0x103
_ENCRYPTED = b"\xfdSMB"
_TRANSFORM = struct.Struct("<4s16s16sIHHQ")
_WANTED_CREDITS = 512  # a window for 32 requests of 1 MB
# what smbprotocol raises for damaged answers, and in a thread that waits when its worker ends
_BROKEN = (OSError, SMBException, ValueError, LookupError, TypeError, struct.error)


class StatusError(Exception):
    """The server refused a request."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status:#010x}")
        self.status = status


class LostError(Exception):
    """The connection is gone, or the session has expired."""


class SignInError(Exception):
    """The server does not accept the account. The message is one line for a person."""


class Account(NamedTuple):
    """``method`` is ntlm, negotiate (a Kerberos ticket), or "" for a guest."""

    method: str = ""
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"<Account {self.user or self.method or 'guest'}>"


class _Waiting:
    """The answers to one request. ``done`` is set once all are there, or the connection is lost."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.replies: dict[int, Reply | None] = dict.fromkeys(ids)
        self.left = len(ids)
        self.done = threading.Event()


class _Tap:
    """smbprotocol's transport, from which the answers to a Link's own requests are taken."""

    def __init__(self, transport: Any, link: Link) -> None:
        self._transport, self._link = transport, link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """Called by smbprotocol when its worker ends with an error, too."""
        self._link.lost()
        self._transport.close()

    def recv(self, timeout: float) -> bytes | None:
        while True:
            data: bytes | None = self._transport.recv(timeout)
            if not data:
                self._link.lost()
                return data
            try:
                is_taken = self._link.take(data)
            except struct.error:  # no message of SMB; smbprotocol ends the connection
                self._link.lost()
                raise
            if not is_taken:
                return data


class Link:
    """All methods may be called in any thread. Raises Unresolved, Refused, TimedOut,
    ConnectionLost, SignInError."""

    def __init__(
        self,
        server: str,
        port: int,
        account: Account,
        secs: float = 30.0,
        check: Callable[[socket.socket], object] = lambda _: None,
    ) -> None:
        """``secs``: the time limit of each step: to connect, to sign in, to connect to a share.
        ``check`` gets the connection before it is signed in, and may raise."""
        self.server, self.port, self.account, self._secs = server, port, account, secs
        self.is_lost = False
        self._trees: dict[str, TreeConnect] = {}
        self._lock = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        self._given_up = set[int]()  # requests whose answers may still come; credits bound them
        self._credits = threading.Condition()
        self._seal: Any = None
        self._open_seal: Any = None
        self._nonce_bytes = 12
        signs = bool(account.method)
        self._connection = Connection(uuid.uuid4(), server, port, require_signing=signs)
        try:
            self._connection.connect(timeout=secs)
        except _BROKEN as error:
            with suppress(OSError):
                self._connection.disconnect(False)
            raise _no_connection(error, server, port) from None
        # the worker reads `transport` for each message
        self._transport: Any = self._connection.transport
        self._connection.transport = _Tap(self._transport, self)
        self._transport._sock.settimeout(secs)  # to send; its worker waits before it reads
        try:
            check(self._transport._sock)
        except (OSError, errors.DeniedAddress) as error:
            self.close()
            if isinstance(error, OSError):
                raise _no_connection(error, server, port) from None
            raise
        self._session = self._sign_in(signs)
        self._prepare()

    def _sign_in(self, signs: bool) -> Session:
        account = self.account
        session = Session(
            self._connection,
            username=account.user or ("guest" if not account.method else None),
            password=account.password or ("" if not account.method else None),
            require_encryption=bool(signs and self._connection.supports_encryption),
            auth_protocol="kerberos" if account.method == "negotiate" else "ntlm",
        )
        try:
            with self._in_time():
                session.connect()
        except SMBResponseException as error:
            self.close()
            raise SignInError(_words(error)) from None
        except (ImportError, *_BROKEN) as error:
            is_lost = self.is_lost or isinstance(error, SMBConnectionClosed)
            self.close()
            if is_lost:
                raise _no_connection(error, self.server, self.port) from None
            raise SignInError(" ".join(str(error).split())) from None
        except errors.TimedOut:
            self.close()
            raise
        return session

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Give smbprotocol, which waits without a limit, a time limit: then the connection ends.
        Raises TimedOut."""
        ended = threading.Event()

        def end() -> None:
            ended.set()
            self._cut()

        timer = threading.Timer(self._secs, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except _BROKEN:
            if ended.is_set():
                raise self._late(self._secs) from None
            raise
        finally:
            timer.cancel()

    def _late(self, secs: float) -> errors.TimedOut:
        return errors.TimedOut(f"{self.server} has not answered within {secs:g} s")

    def _cut(self) -> None:
        """End the connection under threads that send, wait or hold a lock."""
        self.lost()
        with suppress(OSError, AttributeError):
            self._transport._sock.shutdown(socket.SHUT_RDWR)

    def _prepare(self) -> None:
        """The ciphers, made once."""
        connection, session = self._connection, self._session
        if not connection.supports_encryption or session.encryption_key is None:
            return
        is_new = connection.dialect >= Dialects.SMB_3_1_1
        cipher = connection.cipher_id if is_new else Ciphers.AES_128_CCM
        is_gcm = cipher in (Ciphers.AES_128_GCM, Ciphers.AES_256_GCM)
        kind: Any = aead.AESGCM if is_gcm else aead.AESCCM
        self._nonce_bytes = 12 if is_gcm else 11
        self._seal, self._open_seal = kind(session.encryption_key), kind(session.decryption_key)

    @property
    def is_encrypted(self) -> bool:
        return bool(self._session.encrypt_data)

    @property
    def most_bytes(self) -> int:
        """Bytes that one answer may have."""
        most = min(self._connection.max_read_size, self._connection.max_transact_size, 1 << 20)
        return int(most) if self._connection.supports_multi_credit else 65_536

    def tree(self, share: str) -> TreeConnect:
        """A share, connected once. Raises StatusError, LostError, TimedOut."""
        key = share.lower()
        with self._lock:
            if self.is_lost:
                raise LostError
            if key not in self._trees:
                tree = TreeConnect(self._session, rf"\\{self.server}\{share}")
                try:
                    with self._in_time():
                        tree.connect(require_secure_negotiate=bool(self.account.method))
                except SMBResponseException as error:
                    raise StatusError(error.status) from None
                except _BROKEN as error:
                    self._cut()
                    raise LostError(str(error)) from None
                self._trees[key] = tree
            return self._trees[key]

    def forget_tree(self, share: str) -> None:
        """The server has closed the share."""
        with self._lock:
            self._trees.pop(share.lower(), None)

    def ask(
        self, tree: TreeConnect, messages: Sequence[Message], secs: float = 120.0
    ) -> list[Reply]:
        """The answers to one request of several messages, of which each means the file that the
        first one opens. Raises LostError, TimedOut."""
        waiting, data = self._packed(tree, messages)
        try:
            if self.is_lost:
                raise LostError
            try:
                transport = self._transport
                with transport._sock_lock:
                    transport._sock.sendall(struct.pack(">I", len(data)) + data)
            except (OSError, AttributeError, SMBException) as error:
                self._cut()
                raise LostError(str(error)) from None
            if not waiting.done.wait(secs):
                self._given_up.update(waiting.replies)
                raise self._late(secs)
        finally:
            for number, reply in waiting.replies.items():
                self._waiting.pop(number, None)
                if reply is not None:
                    self._given_up.discard(number)
        replies = [reply for reply in waiting.replies.values() if reply is not None]
        if len(replies) < len(messages):
            raise LostError
        return replies

    def _packed(self, tree: TreeConnect, messages: Sequence[Message]) -> tuple[_Waiting, bytes]:
        session, connection = self._session, self._connection
        first = self._numbers(sum(message.charge for message in messages))
        seals = bool(session.encrypt_data or tree.encrypt_data)
        signs = bool(session.signing_required and session.signing_key and not seals)
        base = DFS_PATH if tree.is_dfs_share else 0
        parts, number, ids = [], first, list[int]()
        for at, (command, body, charge) in enumerate(messages):
            is_last = at == len(messages) - 1
            size = 64 + len(body)
            padding = 0 if is_last else -size % 8
            flags = base | (RELATED if at and messages[0].command == CREATE else 0)
            head = HEADER.pack(
                MAGIC, 64, charge, 0, command, charge + 16, flags | (SIGNED if signs else 0),
                0 if is_last else size + padding, number, 0, tree.tree_connect_id,
                session.session_id, bytes(16),
            )  # fmt: skip
            whole = head + body + bytes(padding)
            if signs:
                signature = connection._generate_signature(
                    whole, session.signing_key, number, False, command
                )
                whole = whole[:48] + signature + whole[64:]
            parts.append(whole)
            ids.append(number)
            number += charge
        waiting = _Waiting(ids)
        self._waiting.update(dict.fromkeys(ids, waiting))
        data = b"".join(parts)
        return waiting, self._sealed(data) if seals else data

    def _numbers(self, charge: int) -> int:
        """The number of the next message, as soon as the server allows that many."""
        window, lock = self._connection.sequence_window, self._connection.sequence_lock
        until = time.monotonic() + 60.0
        while True:
            with lock:
                if window["high"] - window["low"] >= charge:
                    first = int(window["low"])
                    window["low"] += charge
                    return first
            with self._credits:
                if self.is_lost:
                    raise LostError
                if time.monotonic() > until:
                    raise errors.TimedOut(f"{self.server} allows no further request")
                self._credits.wait(0.05)

    def _sealed(self, data: bytes) -> bytes:
        nonce = os.urandom(self._nonce_bytes)
        head = _TRANSFORM.pack(
            _ENCRYPTED, bytes(16), nonce.ljust(16, b"\0"), len(data), 0, 1,
            self._session.session_id,
        )  # fmt: skip
        sealed: bytes = self._seal.encrypt(nonce, data, head[20:])
        return head[:4] + sealed[-16:] + head[20:] + sealed[:-16]

    # in smbprotocol's thread

    def take(self, data: bytes) -> bool:
        """Whether a packet answers requests of this Link; then it is given to the threads that
        wait."""
        is_sealed = data[:4] == _ENCRYPTED
        if is_sealed:
            if self._open_seal is None:
                return False
            nonce = data[20 : 20 + self._nonce_bytes]
            try:
                data = self._open_seal.decrypt(nonce, data[52:] + data[4:20], data[20:52])
            except InvalidTag:
                return False  # smbprotocol ends the connection
        (first,) = struct.unpack_from("<Q", data, 24)
        if first not in self._given_up and first not in self._waiting:
            return False
        while data:
            (_, _, _, status, command, credits_, flags, step, number, *_, signature) = (
                HEADER.unpack_from(data)
            )
            if 0 < step < HEADER.size:
                raise struct.error("a message that is shorter than its header")
            message, data = (data[:step], data[step:]) if step else (data, b"")
            if credits_:
                with self._connection.sequence_lock:
                    self._connection.sequence_window["high"] += credits_
                with self._credits:
                    self._credits.notify_all()
            if status == PENDING and flags & IS_ASYNC:
                continue
            if not is_sealed and not self._is_genuine(message, flags, number, command, signature):
                self._connection.disconnect(False)
                self.lost()
                return True
            self._give(number, Reply(status, message))
        return True

    def _is_genuine(
        self, message: bytes, flags: int, number: int, command: int, signature: bytes
    ) -> bool:
        key = self._session.signing_key
        if not key or not self._session.signing_required:
            return not self._session.encrypt_data
        expected: bytes = self._connection._generate_signature(message, key, number, True, command)
        return bool(flags & SIGNED) and expected == signature

    def _give(self, number: int, reply: Reply) -> None:
        self._given_up.discard(number)
        waiting = self._waiting.get(number)
        if waiting is not None and waiting.replies.get(number) is None:
            waiting.replies[number] = reply
            waiting.left -= 1
            if not waiting.left:
                waiting.done.set()

    def lost(self) -> None:
        """Tell all who wait."""
        self.is_lost = True
        for waiting in [*self._waiting.values()]:
            waiting.done.set()

    def close(self) -> None:
        """End the connection."""
        self._cut()
        with suppress(OSError, SMBException):
            self._connection.disconnect(False)


def _no_connection(error: Exception, server: str, port: int) -> Exception:
    cause = error.__cause__ or error
    if isinstance(cause, socket.gaierror):
        return errors.Unresolved(f"{server} has no address")
    if isinstance(cause, TimeoutError):
        return errors.TimedOut(f"{server}:{port} does not answer")
    if isinstance(cause, OSError):
        return errors.Refused(f"{server}:{port}: {cause.strerror or cause}")
    return errors.ConnectionLost(f"{server}:{port}: {' '.join(str(error).split())}")


def _words(error: SMBResponseException) -> str:
    return {
        0xC000006D: "the name or the password is wrong",
        0xC000006E: "the account is restricted",
        0xC0000064: "there is no such user",
        0xC000006A: "the password is wrong",
        0xC0000071: "the password has expired",
        0xC0000072: "the account is disabled",
        0xC0000193: "the account has expired",
        0xC0000224: "the password has to be changed",
        0xC0000234: "the account is locked",
        0xC000015B: "the account may not sign in over the network",
    }.get(error.status, f"status {error.status:#010x}")
