"""The connection to Redis, by scrapy-redis's settings.

    client, name = connect(settings)            # name is for messages: host, port and database
    client, name = connect(settings, socket_timeout=5)
    link = link_to(settings)                    # found to be one that can hold a frontier

REDIS_URL, or REDIS_HOST, REDIS_PORT and REDIS_DB, with REDIS_PARAMS for everything else, among it
``redis_cls``: "redis.cluster.RedisCluster" for a cluster.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException
from redis.retry import Retry
from scrapy.settings import BaseSettings
from scrapy_redis.connection import get_redis_from_settings

from larmspider.cluster.redis_client import RedisLink
from larmspider.errors import ConfigError

if TYPE_CHECKING:
    from larmspider.options import Settings

_NAMES = ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_DB", "REDIS_ENCODING")
_TIMEOUTS = ("socket_timeout", "socket_connect_timeout")
ANSWER_SECS = 5.0
"""How long a Redis may take to answer before a crawl begins; later it is waited for."""


def connect(
    settings: Settings, *, answer_secs: float | None = None, **overrides: Any
) -> tuple[Any, str]:
    """A client, and how messages call its server: never with user or password.

    Sends nothing yet, unless to a cluster. It waits for a connection or an answer as long as
    REDIS_PARAMS says, and no longer than ``answer_secs``. ``overrides`` are arguments of the
    client. Raises ConfigError.
    """
    which = "REDIS_URL" if settings.get("REDIS_URL") else "REDIS_HOST, REDIS_PORT"
    try:
        params = settings.getdict("REDIS_PARAMS")
    except (TypeError, ValueError):
        raise ConfigError("REDIS_PARAMS is not accepted: a mapping (as JSON) is") from None
    params |= {"decode_responses": False, "retry": Retry(NoBackoff(), 1), **overrides}
    if answer_secs is not None:
        params |= {name: _at_most(params.get(name), answer_secs) for name in _TIMEOUTS}
    own = BaseSettings({name: settings.get(name) for name in _NAMES} | {"REDIS_PARAMS": params})
    try:
        with warnings.catch_warnings():
            # scrapy-redis asks for retry_on_timeout, which redis-py does anyway now
            warnings.simplefilter("ignore", DeprecationWarning)
            client = get_redis_from_settings(own)
    except (redis.RedisError, RedisClusterException, OSError) as error:
        why = " ".join(str(error).split())
        raise ConfigError(f"{which}: Redis cannot be used: {why}") from None
    except Exception as error:  # noqa: BLE001 - whatever is wrong with values of the user's
        # its text may hold a part of the password
        raise ConfigError(
            f"{which} and REDIS_PARAMS are not accepted ({type(error).__name__}): a URL such as"
            " redis://[user:password@]host:6379/0, rediss://... or unix:///path is, and arguments"
            " of redis.Redis"
        ) from None
    return client, _name(client)


def link_to(settings: Settings) -> RedisLink:
    """To a Redis that has just answered. Raises ConfigError, within some seconds where nobody
    answers: REDIS_URL names the wrong port, or one that does not speak TLS."""
    probe, where = connect(settings, answer_secs=ANSWER_SECS, retry=Retry(NoBackoff(), 0))
    try:
        RedisLink(probe, where).check()
    finally:
        probe.close()
    client, where = connect(settings)
    link = RedisLink(client, where)
    link.starting = True
    return link


def _at_most(seconds: Any, most: float) -> float:
    return seconds if isinstance(seconds, int | float) and 0 < seconds < most else most


def _name(client: Any) -> str:
    if isinstance(client, redis.RedisCluster):
        node = client.get_primaries()[0]  # type: ignore[no-untyped-call]
        return f"{node.host}:{node.port} (a cluster)"
    with_what = client.connection_pool.connection_kwargs
    where = with_what.get("path") or (
        f"{with_what.get('host', 'localhost')}:{with_what.get('port', 6379)}"
    )
    return f"{where}/{with_what.get('db', 0)}"
