"""Sends commands to Redis in pipelines, again until Redis replies.

    link = link_to(settings)                      # ConfigError: one line that names the fault
    link.run([("GET", b"a"), ("SET", b"b", 1)])   # one round trip; waits while Redis is away

Commands must be safe to send twice, because an answer may be lost. run() waits while Redis is away,
slow, loading, out of memory or a replica, and warns at once and then every 30 s. It ends with
BackendError when ``stop`` is set, and at once for an answer that waiting does not change. A missing
permission is such an answer only at the start: during the crawl an administrator has changed the
user's permissions, and may change them again.

REDIS_URL names the server, or REDIS_HOST, REDIS_PORT and REDIS_DB, with REDIS_PARAMS for everything
else, as in scrapy-redis.
"""

from __future__ import annotations

import logging
import re
import signal
import struct
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

import msgpack
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy_redis.connection import get_redis_from_settings

from larmspider import program
from larmspider.cluster import sentinel
from larmspider.cluster.keys import type_of
from larmspider.cluster.sentinel import SentinelRedis, is_sentinel
from larmspider.errors import ConfigError, LarmspiderError, TemporaryError
from larmspider.frontier.storage.backend import BackendError

if TYPE_CHECKING:
    from larmspider.options import Settings

logger = logging.getLogger(__name__)


UNREACHABLE = (redis.RedisError, OSError)
"""Errors of a client if Redis does not answer, or refuses."""
SAY_AGAIN_SECS = 30.0
_PASSING = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.OutOfMemoryError,
    redis.ReadOnlyError,
    redis.exceptions.NoScriptError,
    OSError,
)
_PASSING_WORDS = ("MISCONF", "LOADING", "BUSY", "NOREPLICAS", "MASTERDOWN", "OOM")
_REFUSED_WORDS = ("NOPERM", "NOAUTH", "WRONGPASS")
_DAMAGED_WORDS = re.compile(r"WRONGTYPE|user_script:[0-9]+: |not an integer|not a valid float")
"""A key has a type that the crawl does not use, or a script could not read its value."""
_UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, struct.error, zlib.error,
    msgpack.UnpackException,
)  # fmt: skip
"""Errors of all that unpacks a value."""
_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"


def passing(error: Exception) -> bool:
    """Whether waiting may help: Redis is away, loading, full, a replica."""
    if refused(error) or _CERTIFICATE in str(error):
        return False
    return isinstance(error, _PASSING) or str(error).startswith(_PASSING_WORDS)


def refused(error: Exception) -> bool:
    """Whether Redis refuses this user, password or command."""
    if isinstance(error, (redis.AuthenticationError, redis.exceptions.NoPermissionError)):
        return True
    return str(error).startswith(_REFUSED_WORDS)


def lasting(error: Exception, where: str, *, starting: bool) -> LarmspiderError | None:
    """The error to raise where waiting does not help; None: wait. A user without permission is
    refused only while the crawl is ``starting``."""
    if passing(error) or (refused(error) and not starting):
        return None
    if _is_damaged(error):
        return lost(where, why(error))
    message = f"Redis at {where} refuses: {why(error)}"
    return ConfigError(message) if refused(error) else BackendError(message)


def why(error: Exception) -> str:
    """The error in one line. Neither Redis nor its client repeats passwords."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    text = text.partition(" : <redis.")[0]  # without a master it names an object per sentinel
    return "it asks for a password" if text.startswith(("HELLO must be", "NOAUTH")) else text


class Lost(BackendError, ConfigError):  # noqa: N818 - named for what happened
    """Redis lacks a part of the crawl that workers have committed."""


def lost(where: str, what: str) -> Lost:
    """The error for a part of the crawl that is gone, or is not what workers have written."""
    return Lost(
        f"Redis at {where} has lost a part of the crawl ({what}): keys were evicted, deleted or"
        " overwritten. Nothing is fetched again. Stop all workers, delete what Redis has left of"
        f" the crawl, and {REBUILD}"
    )


def _is_damaged(error: Exception) -> bool:
    return isinstance(error, redis.ResponseError) and bool(_DAMAGED_WORDS.search(str(error)))


@contextmanager
def sound(client: Any, where: str, keys: Sequence[Any] = ()) -> Iterator[None]:
    """Raise Lost if Redis refuses a command within because one of ``keys`` has another type, or if
    a value cannot be unpacked."""
    try:
        yield
    except redis.ResponseError as error:
        if not _is_damaged(error):
            raise
        raise lost(where, "; ".join(wrong_types(client, keys)) or why(error)) from error
    except LarmspiderError:
        raise
    except _UNREADABLE as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise lost(where, f"a value cannot be read: {said}") from error


def wrong_types(client: Any, keys: Sequence[Any]) -> Iterator[str]:
    """The keys of a crawl that have another type, in words. Raises what UNREACHABLE lists."""
    names = [key.encode() if isinstance(key, str) else key for key in keys]
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.type(name)
        for name, found in zip(names, pipe.execute(), strict=True):
            wanted = type_of(name)
            if wanted and found not in (wanted, b"none"):
                said = name.decode("utf-8", "replace")
                yield f"{said} is a {found.decode()}, expected a {wanted.decode()}"


class ComplaintLog:
    """Logs errors that no caller waits for, at once and then every 30 s."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._warned: float | None = None

    def tell(self, error: Exception) -> None:
        now = self._clock()
        if self._warned is None or now - self._warned >= SAY_AGAIN_SECS:
            self._warned = now
            logger.warning("Redis at %s refuses: %s", self._name, why(error))


Argument: TypeAlias = bytes | str | int
Command: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A file of lua/, which changes keys wholly or not at all; ``digest`` is for EVALSHA."""

    text: bytes
    digest: str


def _read(name: str) -> Script:
    text = files("larmspider.cluster").joinpath("lua", f"{name}.lua").read_bytes()
    return Script(text, sha1(text, usedforsecurity=False).hexdigest())


COMMIT = _read("commit")
APPLY = _read("apply")
CARRIED_OUT = _read("carried_out")
OWN = _read("own")
SEEDS = _read("seeds")
REFILL = _read("refill")
TOLD = _read("told")
SCRIPTS = (COMMIT, APPLY, CARRIED_OUT, OWN, TOLD)


def call(script: Script, keys: Sequence[bytes], arguments: Sequence[Argument]) -> Command:
    """The command that runs a script."""
    return ("EVALSHA", script.digest, len(keys), *keys, *arguments)


def pairs(answer: Any) -> dict[bytes, bytes]:
    """The answer to HGETALL as pairs, in either version of Redis' protocol."""
    if isinstance(answer, Mapping):
        return dict(answer)
    return dict(zip(answer[::2], answer[1::2], strict=True))


NEEDED = (7, 0)
"""The oldest Redis that the backend was tested with."""
PIPELINE_BYTES = 4 << 20
"""Arguments in one round trip, about."""
PART_BYTES = 16 << 20
"""Bytes of a value from which on it goes to Redis in parts; or less: RedisLink.part_bytes."""
REBUILD = (
    f"fill an empty Redis from the workers' directories with `{program.NAME} workers --rebuild`"
    " (docs/redis.md, Rebuild)"
)
NO_EVICTION = "noeviction"
_NO_CLUSTER = "a Redis Cluster, which holds no crawl: expected one Redis server"
SET_NO_EVICTION = (
    "run CONFIG SET maxmemory-policy noeviction, or write maxmemory-policy noeviction in redis.conf"
)
_SIZE_LIMITS = ("proto-max-bulk-len", "client-query-buffer-limit")
"""Settings of Redis that bound one argument of a command. Neither can be below 1 MB."""
_LARGE = 512 << 10  # bytes of an argument that such a limit may concern
_SIZE_WORDS = ("invalid bulk length", "invalid multibulk length", "query buffer")
_SIZE_TRIES = 5  # times that a Redis which answers a PING ends the connection of a large command
START_SECS = 300.0
"""How long a worker that starts waits for a Redis that cannot be used; then it ends with status 75.
A run of this length ends a row of restarts (workers/supervisor.py), so there is always a next."""
_FIRST_WAIT_SECS, _LONGEST_WAIT_SECS = 0.05, 2.0


class RedisLink:
    """``name`` is how messages call the server; never with its password.

    ``stop`` ends the waiting when it is set. Methods may be called from any thread.
    """

    def __init__(self, client: Any, name: str, stop: threading.Event | None = None) -> None:
        self.client, self.name = client, name
        self.stop = stop or threading.Event()
        self.round_trips = 0
        self.waited = 0.0
        """Seconds in all for which Redis could not be used."""
        self.starting = False
        """The crawl has not begun: a user without permission is refused, and Redis is waited for as
        patiently() does."""
        self.part_bytes = PART_BYTES
        """The longest argument to send: half of what this Redis takes, or PART_BYTES."""
        self.gave_up = False
        """Whether work was given up because ``stop`` was set while Redis was away."""

    def give_up(self, why: str) -> BackendError:
        """The error of a call that cannot wait for Redis any longer."""
        self.gave_up = True
        return BackendError(f"Redis at {self.name} {why}")

    def check(self) -> None:
        """Raise ConfigError if this Redis cannot hold a frontier, TemporaryError if it cannot
        do so now. Loads the scripts."""
        try:
            self.round_trips += 1
            info = self.client.info()
            if info.get("redis_mode") == "sentinel":
                raise ConfigError(
                    f"Redis at {self.name} is a Sentinel: expected"
                    " REDIS_URL=redis+sentinel://HOST:26379,HOST2:26379/NAME/0, where NAME is what"
                    " the sentinels call the master"
                )
            version = str(info.get("redis_version", "0"))
            if tuple(int(part) for part in version.split(".")[:2]) < NEEDED:
                wanted = ".".join(map(str, NEEDED))
                raise ConfigError(f"Redis at {self.name} is {version}: {wanted} or newer is needed")
            if info.get("role") in ("slave", "replica"):
                raise TemporaryError(f"Redis at {self.name} is a replica: name its master")
            if info.get("cluster_enabled"):
                raise ConfigError(f"Redis at {self.name} is a node of {_NO_CLUSTER}")
            self._refuse_eviction()
            self._load_scripts()
            limits = self._config(*_SIZE_LIMITS).values()
            self.part_bytes = min([PART_BYTES, *(int(limit) // 2 for limit in limits)])
        except UNREACHABLE as error:
            kind = TemporaryError if passing(error) else ConfigError
            raise kind(
                f"Redis at {self.name} cannot be used: {why(error)}{self._tls_hint(error)}"
            ) from None
        except TypeError as error:  # arguments of a connection, which is made only now
            reason = str(error).rpartition(") ")[2]
            raise ConfigError(f"REDIS_PARAMS: a connection {reason}") from None

    def _tls_hint(self, error: Exception) -> str:
        """The hint for a port without TLS: it reads a TLS greeting as a command, and waits for the
        rest."""
        pool = getattr(self.client, "connection_pool", None)
        with_tls = pool is not None and issubclass(pool.connection_class, redis.SSLConnection)
        if with_tls and isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
            return "; rediss:// is for a port that speaks TLS"
        return ""

    def _refuse_eviction(self) -> None:
        """Raise ConfigError where Redis deletes keys when it is full, whether it has a maxmemory by
        now or not."""
        policy = self.info("memory").get("maxmemory_policy")
        if policy is None:  # a server that is not Redis to the letter
            policy = self._config("maxmemory-policy").get("maxmemory-policy", NO_EVICTION)
        if policy != NO_EVICTION:
            raise ConfigError(
                f"Redis at {self.name} has maxmemory-policy {policy}, which deletes parts of"
                f" the crawl when memory is short: {SET_NO_EVICTION}"
            )

    def info(self, *sections: str) -> dict[str, Any]:
        """Read these sections of INFO. Raises the errors that UNREACHABLE lists."""
        return dict(self.client.info(*sections))

    def _config(self, *names: str) -> dict[str, str]:
        """Settings of Redis, {} if this user may not ask. Raises what UNREACHABLE lists."""
        self.round_trips += 1
        try:
            return dict(self.client.config_get(*names))
        except redis.ResponseError as error:
            if passing(error):
                raise
            return {}

    def _load_scripts(self) -> None:
        for script in SCRIPTS:
            self.round_trips += 1
            self.client.script_load(script.text)

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """The answers, in order. A part that failed is sent again until all have replies."""
        answers: list[Any] = []
        part: list[Command] = []
        size = 0
        for command in commands:
            part.append(command)
            size += sum(len(word) if isinstance(word, (bytes, str)) else 8 for word in command)
            if size > PIPELINE_BYTES:
                answers += self._insist(part)
                part, size = [], 0
        if part:
            answers += self._insist(part)
        return answers

    def _send(self, commands: Sequence[Command]) -> list[Any]:
        self.round_trips += 1
        with self.client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            answers: list[Any] = pipe.execute(raise_on_error=False)
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, Exception):
                with sound(self.client, self.name, _keys_of(command)):
                    raise answer
        return answers

    def _insist(self, commands: Sequence[Command]) -> list[Any]:
        failures = 0

        def send() -> list[Any]:
            nonlocal failures
            try:
                return self._sent(lambda: self._send(commands))
            except UNREACHABLE as error:
                failures += 1
                if (refusal := self._too_large(error, commands, failures)) is not None:
                    raise refusal from error
                raise

        if self.starting:
            return insist(send, self.name)
        began = warned = 0.0
        wait = _FIRST_WAIT_SECS
        while True:
            try:
                answers = send()
            except UNREACHABLE as error:
                now = time.monotonic()
                began = began or now
                if (end := lasting(error, self.name, starting=False)) is not None:
                    raise end from error
                if not warned or now - warned >= SAY_AGAIN_SECS:
                    warned = now
                    logger.warning(
                        "Redis at %s cannot be used (%s): waiting%s",
                        self.name,
                        why(error),
                        f", {now - began:.0f} s so far" if now > began else "",
                    )
                if self.stop.wait(wait):
                    raise self.give_up(f"cannot be used: {why(error)}") from error
                wait = min(2 * wait, _LONGEST_WAIT_SECS)
            else:
                if began:
                    self.waited += time.monotonic() - began
                    logger.warning(
                        "Redis at %s is back after %.1f s", self.name, time.monotonic() - began
                    )
                return answers

    def _too_large(
        self, error: Exception, commands: Sequence[Command], failures: int
    ) -> BackendError | None:
        """The error to raise where Redis refuses a command for its size; None: it does not. Redis
        ends the connection then, often before the client has read why."""
        said = any(word in str(error) for word in _SIZE_WORDS)
        if not said and not isinstance(error, (redis.ConnectionError, OSError)):
            return None
        size = max((len(word) for words in commands for word in words if _is_text(word)), default=0)
        if not said and size < _LARGE:
            return None
        limits = self._limits_now()
        if limits is None:
            limits = self._limits_now()  # a connection of the pool was ended
        if limits is None:
            return None  # it is away
        over = [f"{name} (now {limit})" for name, limit in limits.items() if int(limit) <= size]
        if not (said or over) and failures < _SIZE_TRIES:
            return None
        setting = " and ".join(over or _SIZE_LIMITS)
        return BackendError(
            f"Redis at {self.name} refuses a command with an argument of {size:,} bytes: raise its"
            f" {setting}, by CONFIG SET and in redis.conf"
        )

    def _limits_now(self) -> dict[str, str] | None:
        """The limits of an argument, if this user may ask for them; None if Redis is away."""
        try:
            self.client.ping()
            return self._config(*_SIZE_LIMITS)
        except UNREACHABLE:
            return None

    def _sent(self, send: Callable[[], list[Any]]) -> list[Any]:
        """The answers; a server that was restarted has forgotten the scripts, and gets them."""
        try:
            return send()
        except redis.exceptions.NoScriptError:
            self._load_scripts()
            return send()


def _keys_of(command: Command) -> Sequence[Argument]:
    if command[0] == "EVALSHA":
        return command[3 : 3 + int(command[2])]
    return command[1:] if command[0] in ("EXISTS", "DEL") else command[1:2]


def _is_text(word: Argument) -> TypeGuard[bytes | str]:
    return isinstance(word, (bytes, str))


_NAMES = ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_DB", "REDIS_ENCODING")
_TIMEOUTS = ("socket_timeout", "socket_connect_timeout")
ANSWER_SECS = 5.0
"""How long a Redis may take to answer before a crawl begins; later it is waited for."""


def connect(
    settings: Settings, *, answer_secs: float | None = None, **overrides: Any
) -> tuple[Any, str]:
    """A client, and the name of its server for messages: never with user or password.

    Sends nothing yet. It waits for a connection or an answer as long as REDIS_PARAMS says, and at
    most ``answer_secs``. ``overrides`` are arguments of the client. Raises ConfigError.
    """
    which = "REDIS_URL" if settings.get("REDIS_URL") else "REDIS_HOST, REDIS_PORT"
    try:
        params = settings.getdict("REDIS_PARAMS")
    except (TypeError, ValueError):
        raise ConfigError("REDIS_PARAMS: expected a mapping (JSON on the command line)") from None
    if _is_cluster_client(params.get("redis_cls")):
        raise ConfigError(f"REDIS_PARAMS: redis_cls={params['redis_cls']} is for {_NO_CLUSTER}")
    params |= {"decode_responses": False, "retry": Retry(NoBackoff(), 1), **overrides}
    if answer_secs is not None:
        params |= {name: _at_most(params.get(name), answer_secs) for name in _TIMEOUTS}
    if is_sentinel(settings.get("REDIS_URL") or ""):
        params["redis_cls"] = SentinelRedis
    own = BaseSettings({name: settings.get(name) for name in _NAMES} | {"REDIS_PARAMS": params})
    try:
        with warnings.catch_warnings():
            # scrapy-redis asks for retry_on_timeout, which redis-py does anyway now
            warnings.simplefilter("ignore", DeprecationWarning)
            client = get_redis_from_settings(own)
    except ConfigError:
        raise
    except UNREACHABLE as error:
        kind = TemporaryError if passing(error) else ConfigError
        raise kind(f"{which}: Redis cannot be used: {why(error)}") from None
    except Exception as error:  # noqa: BLE001 - whatever is wrong with values of the user's
        # the text of the error may hold a part of the password
        raise ConfigError(
            f"{which} and REDIS_PARAMS cannot be used ({type(error).__name__}): expected a URL such"
            " as redis://[user:password@]host:6379/0, rediss://..., unix:///path or"
            " redis+sentinel://host:26379,host2:26379/mymaster/0, and arguments of redis.Redis"
        ) from None
    return client, name_of(client)


def _is_cluster_client(name: object) -> bool:
    """Whether REDIS_PARAMS asks for a client of Redis Cluster, by class or import path."""
    with suppress(Exception):  # whatever is wrong with the name, the client's maker says it
        kind = load_object(name) if isinstance(name, str) else name
        return isinstance(kind, type) and issubclass(kind, redis.RedisCluster)
    return False


def link_to(settings: Settings) -> RedisLink:
    """A link to a Redis that has just passed check(), with waits as in patiently().
    Raises ConfigError, TemporaryError."""
    return patiently(lambda: _link_to(settings))


T = TypeVar("T")


def patiently(ask: Callable[[], T]) -> T:
    """Call ``ask`` until it raises no TemporaryError, for START_SECS, or until SIGINT or SIGTERM
    comes; warns at once and then every 30 s."""
    begun = time.monotonic()
    warned, wait = 0.0, _FIRST_WAIT_SECS
    with _told_to_stop() as stop:
        while True:
            try:
                return ask()
            except TemporaryError as error:
                now = time.monotonic()
                if now > begun + START_SECS or stop.is_set():
                    raise
                if not warned or now > warned + SAY_AGAIN_SECS:
                    warned = now
                    logger.warning("%s: waiting", error)
            stop.wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECS)


def insist(ask: Callable[[], T], where: str) -> T:
    """Call ``ask`` until Redis answers, as patiently() does. Raises ConfigError, TemporaryError."""

    def asked() -> T:
        try:
            return ask()
        except UNREACHABLE as error:
            if (refusal := lasting(error, where, starting=True)) is not None:
                raise refusal from None
            raise TemporaryError(f"Redis at {where} cannot be used: {why(error)}") from None

    return patiently(asked)


@contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Set when SIGINT or SIGTERM comes within this block. Their handlers get them after it, unless
    that is how Python ends a process and an error ends it anyway."""
    stop, signals = threading.Event(), list[int]()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, _frame: object) -> None:
        signals.append(number)
        stop.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)
        failed = sys.exc_info()[0] is not None
        for number in map(signal.Signals, signals):
            if not failed or before[number] not in (signal.SIG_DFL, signal.default_int_handler):
                signal.raise_signal(number)


def _link_to(settings: Settings) -> RedisLink:
    probe, where = connect(settings, answer_secs=ANSWER_SECS, retry=Retry(NoBackoff(), 0))
    try:
        checked = RedisLink(probe, where)
        checked.check()
    finally:
        probe.close()
    client, where = connect(settings)
    link = RedisLink(client, where)
    link.part_bytes = checked.part_bytes
    link.starting = True
    return link


def _at_most(seconds: Any, most: float) -> float:
    return seconds if isinstance(seconds, int | float) and 0 < seconds < most else most


def name_of(client: Any) -> str:
    """The name of a client's server in messages."""
    with_what = client.connection_pool.connection_kwargs
    if isinstance(client.connection_pool, SentinelConnectionPool):
        return f"{sentinel.name_of(client.connection_pool)}/{with_what.get('db', 0)}"
    where = with_what.get("path") or (
        f"{with_what.get('host', 'localhost')}:{with_what.get('port', 6379)}"
    )
    return f"{where}/{with_what.get('db', 0)}"
