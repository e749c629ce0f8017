"""The master that Redis Sentinel names, as a client like any other.

    client = SentinelRedis.from_url("redis+sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster/0")

Each new connection asks the sentinels for the master. After a failover the connections to the old
master end, and the next ones go to the new master. REDIS_PARAMS may have ``sentinel_kwargs``:
arguments of the connections to the sentinels, such as their password.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from larmspider.errors import ConfigError

_URL = re.compile(
    r"(?P<tls>redis|rediss)\+sentinel://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<hosts>[^/@]+)/(?P<service>[^/]+)(?:/(?P<db>[0-9]+))?/?"
)
_HOST = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
PORT = 26379


def is_sentinel(url: str) -> bool:
    """Whether REDIS_URL names sentinels."""
    return url.partition("://")[0].endswith("+sentinel")


class SentinelRedis(redis.Redis):
    """``redis_cls`` of a REDIS_URL that names sentinels."""

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Any:
        """Raises ConfigError; its text has no password."""
        found = _URL.fullmatch(url)
        hosts = [_HOST.fullmatch(one) for one in found["hosts"].split(",")] if found else []
        sentinels = [(one["host"].strip("[]"), int(one["port"] or PORT)) for one in hosts if one]
        ports_are_well = all(0 < port < 65_536 for _, port in sentinels)
        if found is None or len(sentinels) < len(hosts) or not ports_are_well:
            raise ConfigError(
                "REDIS_URL: expected redis+sentinel://[user:password@]HOST:26379,HOST2:26379/NAME/0,"
                " where NAME is what the sentinels call the master"
            )
        if found["user"]:
            options["username"] = unquote(found["user"])
        if found["password"]:
            options["password"] = unquote(found["password"])
        if found["tls"] == "rediss":
            options["ssl"] = True
        timeouts = {name: value for name, value in options.items() if name.startswith("socket_")}
        once = {"retry": Retry(NoBackoff(), 0)}  # the next sentinel answers sooner
        own = timeouts | once | (options.pop("sentinel_kwargs", None) or {})
        sentinel = Sentinel(sentinels, sentinel_kwargs=own)  # type: ignore[no-untyped-call]
        return sentinel.master_for(  # type: ignore[no-untyped-call]
            unquote(found["service"]), redis_class=cls, db=int(found["db"] or 0), **options
        )

    def close(self) -> None:
        """The connections to the sentinels, too."""
        pool = getattr(self, "connection_pool", None)
        super().close()
        if isinstance(pool, SentinelConnectionPool):
            for sentinel in pool.sentinel_manager.sentinels:
                sentinel.close()


def name_of(pool: SentinelConnectionPool) -> str:
    """How messages call the master."""
    places = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
    where = ",".join(f"{place['host']}:{place['port']}" for place in places)
    return f"{pool.service_name} (by Sentinel at {where})"
