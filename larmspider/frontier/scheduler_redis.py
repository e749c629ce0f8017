"""The connection to Redis, by scrapy-redis's settings.

    client, name = connect(settings)            # name is for messages: host, port and database
    client, name = connect(settings, socket_timeout=5)

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

from larmspider.errors import ConfigError

if TYPE_CHECKING:
    from larmspider.options import Settings

_NAMES = ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_DB", "REDIS_ENCODING")


def connect(settings: Settings, **overrides: Any) -> tuple[Any, str]:
    """A client, and how messages call its server: never with user or password.

    Sends nothing yet, unless to a cluster. ``overrides`` are arguments of the client. Raises
    ConfigError.
    """
    which = "REDIS_URL" if settings.get("REDIS_URL") else "REDIS_HOST, REDIS_PORT"
    try:
        params = settings.getdict("REDIS_PARAMS")
    except (TypeError, ValueError):
        raise ConfigError("REDIS_PARAMS is not accepted: a mapping (as JSON) is") from None
    params |= {"decode_responses": False, "retry": Retry(NoBackoff(), 1), **overrides}
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


def _name(client: Any) -> str:
    if isinstance(client, redis.RedisCluster):
        node = client.get_primaries()[0]  # type: ignore[no-untyped-call]
        return f"{node.host}:{node.port} (a cluster)"
    with_what = client.connection_pool.connection_kwargs
    where = with_what.get("path") or (
        f"{with_what.get('host', 'localhost')}:{with_what.get('port', 6379)}"
    )
    return f"{where}/{with_what.get('db', 0)}"
