"""Commands to Redis in pipelines, again and again until it has carried them out.

    link = RedisLink(client, "redis.example:6379/0")
    link.check()                                  # at the start: one line that says what is wrong
    link.run([("GET", b"a"), ("SET", b"b", 1)])   # one round trip; waits where Redis is away

What is sent must be safe to send twice, for an answer may be lost. run() waits while Redis is
away, slow, loading, out of memory, a replica or without its cluster, says so once and then every
30 s, and goes on. It ends with BackendError when it is told to stop waiting, and at once for an
answer that waiting does not change. What this user may not do is such an answer at the start only:
a worker in mid-crawl waits until he may again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
from redis.exceptions import RedisClusterException

from larmspider.cluster.redis_errors import SAY_AGAIN_SECS, lasting, why
from larmspider.cluster.redis_scripts import SCRIPTS, Command
from larmspider.errors import ConfigError
from larmspider.frontier.storage.backend import BackendError

logger = logging.getLogger(__name__)

NEEDED = (7, 0)
"""The oldest Redis that the backend was tested with."""
PIPELINE_BYTES = 4 << 20
"""Of arguments in one round trip, about."""
LOADING_SECS = 60.0
"""How long a Redis that has just been started may read its file before a crawl begins."""
_FIRST_WAIT_SECS, _LONGEST_WAIT_SECS = 0.05, 2.0


class RedisLink:
    """``name`` is how messages call the server; never with its password.

    ``stop`` ends the waiting when it is set. Methods may be called from any thread.
    """

    def __init__(self, client: Any, name: str, stop: threading.Event | None = None) -> None:
        self.client, self.name = client, name
        self.stop = stop or threading.Event()
        self.round_trips = 0
        """So many times commands were sent and answers waited for."""
        self.waited = 0.0
        """Seconds that Redis could not be used, in all."""
        self.starting = False
        """Whether the crawl is not under way yet: then a user without permission is refused."""

    def check(self) -> None:
        """Raise ConfigError where this Redis cannot hold a frontier. Loads the scripts."""
        try:
            info = self._when_loaded()
            version = str(info.get("redis_version", "0"))
            if tuple(int(part) for part in version.split(".")[:2]) < NEEDED:
                wanted = ".".join(map(str, NEEDED))
                raise ConfigError(f"Redis at {self.name} is {version}: {wanted} or newer is needed")
            if info.get("role") in ("slave", "replica"):
                raise ConfigError(f"Redis at {self.name} is a replica: name its master")
            self._load_scripts()
        except (redis.RedisError, RedisClusterException, OSError) as error:
            raise ConfigError(
                f"Redis at {self.name} cannot be used: {why(error)}{self._tls_hint(error)}"
            ) from None
        except TypeError as error:  # arguments of a connection, which is made only now
            said = str(error).rpartition(") ")[2]
            raise ConfigError(f"REDIS_PARAMS is not accepted: a connection {said}") from None

    def _tls_hint(self, error: Exception) -> str:
        """A port without TLS waits for the rest of what it takes for a command."""
        pool = getattr(self.client, "connection_pool", None)
        with_tls = pool is not None and issubclass(pool.connection_class, redis.SSLConnection)
        if with_tls and isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
            return "; rediss:// is for a port that speaks TLS"
        return ""

    def _when_loaded(self) -> dict[str, Any]:
        end = time.monotonic() + LOADING_SECS
        while True:
            try:
                info: dict[str, Any] = self._info()
            except redis.BusyLoadingError:
                if time.monotonic() > end or self.stop.wait(0.1):
                    raise
            else:
                return info

    def _info(self) -> dict[str, Any]:
        self.round_trips += 1
        if isinstance(self.client, redis.RedisCluster):
            node = self.client.get_random_primary_node()
            return dict(self.client.info(target_nodes=node))
        return dict(self.client.info())

    def _load_scripts(self) -> None:
        for script in SCRIPTS:
            self.round_trips += 1
            self.client.script_load(script.text)

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """The answers, in order; of all or of none: a part that failed is sent again."""
        answers: list[Any] = []
        part: list[Command] = []
        size = 0
        for command in commands:
            part.append(command)
            size += sum(len(word) if isinstance(word, (bytes, str)) else 8 for word in command)
            if size > PIPELINE_BYTES:
                answers += self._insist(lambda some=part: self._send(some))  # type: ignore[misc]
                part, size = [], 0
        if part:
            answers += self._insist(lambda: self._send(part))
        return answers

    def _send(self, commands: Sequence[Command]) -> list[Any]:
        self.round_trips += 1
        with self.client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            answers: list[Any] = pipe.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def _insist(self, send: Callable[[], list[Any]]) -> list[Any]:
        began = said = 0.0
        wait = _FIRST_WAIT_SECS
        scripts_loaded = False
        while True:
            try:
                answers = send()
            except (redis.RedisError, RedisClusterException, OSError) as error:
                if isinstance(error, redis.exceptions.NoScriptError) and not scripts_loaded:
                    scripts_loaded = True
                    self._load_scripts_again()
                    continue
                now = time.monotonic()
                began = began or now
                if (end := lasting(error, self.name, starting=self.starting)) is not None:
                    raise end from error
                if not said or now - said >= SAY_AGAIN_SECS:
                    said = now
                    logger.warning(
                        "Redis at %s cannot be used (%s): waiting%s",
                        self.name,
                        why(error),
                        f", {now - began:.0f} s so far" if now > began else "",
                    )
                if self.stop.wait(wait):
                    raise BackendError(
                        f"Redis at {self.name} cannot be used: {why(error)}"
                    ) from error
                wait = min(2 * wait, _LONGEST_WAIT_SECS)
                scripts_loaded = False
            else:
                if began:
                    self.waited += time.monotonic() - began
                    logger.warning(
                        "Redis at %s is back after %.1f s", self.name, time.monotonic() - began
                    )
                return answers

    def _load_scripts_again(self) -> None:
        """A server that was started anew has forgotten them, which is no news."""
        try:
            self._load_scripts()
        except (redis.RedisError, RedisClusterException, OSError):
            pass  # the next attempt says it
