"""StreamReceiver: a message for each page and removal, at least once, in a stream of Redis or NATS.

    LARM_STREAM_URL=redis://:secret@redis.example:6379/0      a Redis stream (XADD)
    LARM_STREAM_URL=nats://user:secret@nats.example:4222      NATS JetStream

Its name, LARM_STREAM_NAME, is the key of the Redis stream, or stream and subject of NATS. A message
is JSON, without the body. ``url`` and ``stamp`` name it for ever: whoever reads the stream drops
what comes twice, as JetStream does by itself (Nats-Msg-Id) within two minutes.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.pipelines.outbox.receiver import AwayError, Receiver, RefusedError, Sent
from larmspider.pipelines.outbox.spool import Entry

if TYPE_CHECKING:
    from larmspider.options import Settings

TIMEOUT_SECS = 30
URLS = "redis://:password@host:6379/0, rediss://... or nats://user:password@host:4222"


class _Stream(ABC):
    """What differs between servers."""

    @abstractmethod
    def open(self) -> None:
        """Raises AwayError, RefusedError, as add() does."""

    @abstractmethod
    def add(self, messages: Sequence[tuple[Entry, bytes]]) -> Sent: ...

    @abstractmethod
    def close(self) -> None: ...


class _Redis(_Stream):
    def __init__(self, url: str, name: str) -> None:
        import redis  # here: most crawls need none, and it takes 0.1 s

        self._redis, self._name = redis, name
        self._client = redis.Redis.from_url(
            url, socket_timeout=TIMEOUT_SECS, socket_connect_timeout=10
        )

    def open(self) -> None:
        kind = self._done(lambda: self._client.type(self._name))
        if kind not in (b"none", b"stream"):
            raise RefusedError(f"{self._name} is a {kind.decode()}, expected a stream or none")

    def add(self, messages: Sequence[tuple[Entry, bytes]]) -> Sent:
        pipeline = self._client.pipeline(transaction=False)
        for entry, message in messages:
            fields: Any = {"url": entry.url, "stamp": entry.stamp, "page": message}
            pipeline.xadd(self._name, fields)
        answers = self._done(lambda: pipeline.execute(raise_on_error=False))
        failed = {n: one for n, one in enumerate(answers) if isinstance(one, Exception)}
        if len(failed) == len(messages):
            self._done(lambda: _raise(failed[0]))
        return Sent(again=failed)

    def _done(self, action: Any) -> Any:
        errors = self._redis.exceptions
        try:
            return action()
        except (errors.AuthenticationError, errors.NoPermissionError) as error:
            raise RefusedError(str(error)) from None
        except errors.RedisError as error:  # also OOM: it is full
            raise AwayError(str(error) or type(error).__name__) from None

    def close(self) -> None:
        self._client.close()


def _raise(error: Exception) -> None:
    raise error


class _Nats(_Stream):
    def __init__(self, url: str, name: str) -> None:
        try:
            import nats.aio.client
            import nats.errors
            import nats.js.errors
        except ImportError:
            raise ConfigError(
                "LARM_STREAM_URL: nats:// needs nats-py: pip install 'larmspider[nats]'"
            ) from None
        self._nats, self._url, self._name = nats, url, name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._heard = ""
        """The last error that the client has met by itself."""

    def open(self) -> None:
        self._heard = ""
        self._run(self._open())

    async def _open(self) -> None:
        self._client = self._nats.aio.client.Client()
        await self._client.connect(
            self._url,
            allow_reconnect=False,
            connect_timeout=10,
            max_reconnect_attempts=1,
            reconnect_time_wait=0.1,
            error_cb=self._hear,
        )
        stream = self._client.jetstream()
        try:
            await stream.add_stream(name=self._name, subjects=[self._name])
        except self._nats.js.errors.BadRequestError:  # it is there, as somebody has made it
            if await stream.find_stream_name_by_subject(self._name) != self._name:
                raise RefusedError(
                    f"a stream has the subject {self._name} that has another name"
                ) from None

    def add(self, messages: Sequence[tuple[Entry, bytes]]) -> Sent:
        rejected = {}
        for number, (_, message) in enumerate(messages):
            if len(message) > self._client.max_payload:
                size = f"{len(message):,} bytes, more than its max_payload"
                rejected[number] = f"{size} ({self._client.max_payload:,})"
        found = self._run(self._publish([
            one for number, one in enumerate(messages) if number not in rejected
        ]))  # fmt: skip
        if found and all(isinstance(one, BaseException) for one in found):
            self._run(_reraise(found[0]))
        answers = iter(found)
        again = [
            number
            for number in range(len(messages))
            if number not in rejected and isinstance(next(answers), BaseException)
        ]
        return Sent(rejected, again)

    async def _hear(self, error: Exception) -> None:
        self._heard = str(error)

    async def _publish(self, messages: Sequence[tuple[Entry, bytes]]) -> list[Any]:
        stream = self._client.jetstream()

        async def publish(entry: Entry, message: bytes) -> Any:
            name = f"{sha256(entry.url.encode()).hexdigest()} {entry.stamp}"
            return await stream.publish(
                self._name, message, timeout=TIMEOUT_SECS, headers={"Nats-Msg-Id": name}
            )

        return await asyncio.gather(*(publish(*one) for one in messages), return_exceptions=True)

    def _run(self, action: Any) -> Any:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        errors = self._nats.errors
        try:
            return self._loop.run_until_complete(asyncio.wait_for(action, 2 * TIMEOUT_SECS))
        except (errors.AuthorizationError, errors.NoRespondersError) as error:
            raise RefusedError(str(error) or "it has no JetStream (nats-server -js)") from None
        except (errors.Error, self._nats.js.errors.Error, OSError, TimeoutError) as error:
            said = self._heard or str(error) or type(error).__name__
            kind = RefusedError if "Authorization" in said else AwayError
            raise kind(said) from None

    def close(self) -> None:
        client, loop = self._client, self._loop
        self._client = self._loop = None
        if loop is not None:
            with suppress(Exception):  # it is gone anyway
                loop.run_until_complete(client.close())
            loop.close()


async def _reraise(error: BaseException) -> None:
    raise error


class StreamReceiver(Receiver):
    """Writes to LARM_STREAM_URL."""

    settings = ("LARM_STREAM_URL", "LARM_STREAM_NAME")
    wants_body = False

    def __init__(self, url: str, name: str) -> None:
        """Raises ConfigError."""
        kinds: dict[str, Callable[[str, str], _Stream]] = {
            "redis": _Redis,
            "rediss": _Redis,
            "nats": _Nats,
            "tls": _Nats,
        }
        scheme = ""
        with suppress(ValueError):
            parts = urlsplit(url)
            scheme = parts.scheme if parts.hostname and parts.port != 0 else ""
        if scheme not in kinds:
            raise ConfigError(f"LARM_STREAM_URL={url.partition('://')[0]}...: expected {URLS}")
        self._stream = kinds[scheme](url, name)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        name = options.text(settings, "LARM_STREAM_NAME").strip()
        if not name or not name.isprintable() or " " in name:
            raise ConfigError(f"LARM_STREAM_NAME={name}: expected a name, such as larm-pages")
        return cls(options.text(settings, "LARM_STREAM_URL").strip(), name)

    def connect(self) -> None:
        self._stream.open()

    def send(self, batch: Sequence[Entry]) -> Sent:
        return self._stream.add([(entry, message(entry)) for entry in batch])

    def close(self) -> None:
        self._stream.close()


def message(entry: Entry) -> bytes:
    """JSON: the fields of a page, with its links, or url, stamp and removed."""
    found = {name: value for name, value in entry.page.items() if name not in ("at", "body")}
    if entry.removed is None:
        found["links"] = [link._asdict() for link in entry.links]
    return json.dumps(found, ensure_ascii=True).encode()
