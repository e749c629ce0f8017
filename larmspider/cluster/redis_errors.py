"""Which errors of Redis pass by waiting, how they are told, and how often.

passing(error)                  # it is away, loading, full, a replica: it will be back
lasting(error, "host:6379/0", starting=True)     # the error to raise where it will not pass
why(error)                      # one line, without a password
Complaints("host:6379/0").tell(error)     # a warning at once, then every 30 s
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import redis
from redis.exceptions import RedisClusterException

from larmspider.errors import ConfigError, LarmspiderError
from larmspider.frontier.storage.backend import BackendError

logger = logging.getLogger(__name__)

SAY_AGAIN_SECS = 30.0
_PASSING = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.OutOfMemoryError,
    redis.ReadOnlyError,
    redis.exceptions.ClusterError,
    redis.exceptions.TryAgainError,
    redis.exceptions.AskError,
    redis.exceptions.NoScriptError,
    RedisClusterException,
    OSError,
)
_PASSING_WORDS = ("MISCONF", "LOADING", "BUSY", "NOREPLICAS", "CLUSTERDOWN", "MASTERDOWN", "OOM")
_REFUSED_WORDS = ("NOPERM", "NOAUTH", "WRONGPASS")


def passing(error: Exception) -> bool:
    """Whether the same question may be answered later, with nobody changing anything but Redis
    itself."""
    if refused(error):
        return False
    return isinstance(error, _PASSING) or str(error).startswith(_PASSING_WORDS)


def refused(error: Exception) -> bool:
    """Whether Redis knows this user or password, or what he may do, no more or not yet."""
    if isinstance(error, (redis.AuthenticationError, redis.exceptions.NoPermissionError)):
        return True
    return str(error).startswith(_REFUSED_WORDS)


def lasting(error: Exception, where: str, *, starting: bool) -> LarmspiderError | None:
    """What to raise where waiting does not help; None: it is to be waited for. A user without
    permission is refused while the crawl is ``starting``; later somebody has changed what he may
    do, and may change it again."""
    if passing(error) or (refused(error) and not starting):
        return None
    said = f"Redis at {where} refuses: {why(error)}"
    return ConfigError(said) if refused(error) else BackendError(said)


def why(error: Exception) -> str:
    """In one line; Redis does not repeat passwords, and neither does its client."""
    text = " ".join(str(error).split()) or type(error).__name__
    return "it asks for a password" if text.startswith(("HELLO must be", "NOAUTH")) else text


class Complaints:
    """``name`` is the server's; the error that it is told of may be another each time."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._said: float | None = None

    def tell(self, error: Exception) -> None:
        """Warn of an answer that Redis gives, which nobody else waits for and tells of."""
        now = self._clock()
        if self._said is None or now - self._said >= SAY_AGAIN_SECS:
            self._said = now
            logger.warning("Redis at %s refuses: %s", self._name, why(error))
