"""StreamReceiver: a message for each page and removal, at least once, to Redis, NATS or Kafka.

    LARM_STREAM_URL=redis://:secret@redis.example:6379/0      a Redis stream (XADD)
    LARM_STREAM_URL=nats://user:secret@nats.example:4222      NATS JetStream
    LARM_STREAM_URL=kafka://one.example:9092,two.example:9092 a topic of Kafka

Its name, LARM_STREAM_NAME, is the key of the Redis stream, stream and subject of NATS, or the topic
of Kafka, where the URL is the key of a message. A message is JSON, without the body. ``url`` and
``stamp`` name it for ever: readers of the stream drop messages that come twice. JetStream does this
by itself (Nats-Msg-Id) within two minutes.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.pipelines.outbox.receiver import AwayError, Receiver, RefusedError, Sent, Unfit
from larmspider.pipelines.outbox.spool import Entry
from larmspider.redaction import keep_secrets_of

if TYPE_CHECKING:
    from larmspider.options import Settings

TIMEOUT_SECS = 30
URLS = (
    "redis://:password@host:6379/0, rediss://..., nats://user:password@host:4222"
    " or kafka://user:password@host:9092"
)
_ID = re.compile(rb"[0-9]{1,20}-[0-9]{1,20}")
_MAX_MESSAGE = 100_000_000
"""Bytes; a broker may refuse less, with a message."""


class _Stream(ABC):
    """A stream on one kind of server."""

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
            shown = kind.decode("utf-8", "replace") if isinstance(kind, bytes) else kind
            raise RefusedError(f"{self._name} is a {shown}, expected a stream or none")

    def add(self, messages: Sequence[tuple[Entry, bytes]]) -> Sent:
        pipeline = self._client.pipeline(transaction=False)
        for entry, message in messages:
            fields: Any = {"url": entry.url, "stamp": entry.stamp, "page": message}
            pipeline.xadd(self._name, fields)
        answers = self._done(lambda: pipeline.execute(raise_on_error=False))
        failed = {n: one for n, one in enumerate(answers) if not _is_id(one)}
        if len(failed) == len(messages):
            if not isinstance(failed[0], Exception):
                raise AwayError("its answer does not fit the messages")
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


def _is_id(answer: Any) -> bool:
    """Whether it is what XADD answers."""
    return isinstance(answer, bytes) and _ID.fullmatch(answer) is not None


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
        self._thread = threading.Thread()
        self._client: Any = None
        self._heard = ""
        """The last error that the client itself reported."""

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
        except self._nats.js.errors.BadRequestError:  # it exists, with a configuration of its own
            if await stream.find_stream_name_by_subject(self._name) != self._name:
                raise RefusedError(
                    f"a stream has the subject {self._name} that has another name"
                ) from None

    def add(self, messages: Sequence[tuple[Entry, bytes]]) -> Sent:
        rejected = {}
        for number, (_, message) in enumerate(messages):
            if len(message) > self._client.max_payload:
                size = f"{len(message):,} bytes, more than its max_payload"
                rejected[number] = Unfit(f"{size} ({self._client.max_payload:,})")
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
        if self._loop is None:  # in a thread: a starting crawl calls this from within its own loop
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            self._thread.start()
        errors = self._nats.errors
        limited = asyncio.wait_for(action, 2 * TIMEOUT_SECS)
        try:
            return asyncio.run_coroutine_threadsafe(limited, self._loop).result()
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
                asyncio.run_coroutine_threadsafe(client.close(), loop).result(TIMEOUT_SECS)
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


async def _reraise(error: BaseException) -> None:
    raise error


class _Kafka(_Stream):
    def __init__(self, url: str, name: str) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise ConfigError(
                "LARM_STREAM_URL: kafka:// needs confluent-kafka: pip install 'larmspider[kafka]'"
            ) from None
        self._kafka, self._name = confluent_kafka, name
        parts = urlsplit(url)
        secure = "SSL" if parts.scheme == "kafkas" else "PLAINTEXT"
        self._options: dict[str, Any] = {
            "bootstrap.servers": parts.netloc.rpartition("@")[2],
            "security.protocol": secure,
            "enable.idempotence": True,
            "message.timeout.ms": TIMEOUT_SECS * 1000,
            "message.max.bytes": _MAX_MESSAGE,
            "log_level": 0,
            "error_cb": self._hear,
        }
        if parts.username is not None:
            self._options |= {
                "security.protocol": f"SASL_{secure}",
                "sasl.mechanism": "PLAIN",
                "sasl.username": unquote(parts.username),
                "sasl.password": unquote(parts.password or ""),
            }
        self._producer: Any = None
        self._heard: Any = None
        """The last error that the client itself reported."""

    def _hear(self, error: Any) -> None:
        # "all brokers are down" says less than the cause
        if self._heard is None or error.code() != self._kafka.KafkaError._ALL_BROKERS_DOWN:
            self._heard = error

    def open(self) -> None:
        self._heard = None
        try:
            self._producer = self._kafka.Producer(self._options)
            for _ in range(10):  # a topic that it makes at the first question has no leader yet
                problem = self._producer.list_topics(self._name, 10).topics[self._name].error
                if problem is None:
                    return
                time.sleep(0.3)
        except self._kafka.KafkaException as error:
            self._producer.poll(0)  # why, to _hear()
            raise self._failed(error.args[0]) from None
        raise self._failed(problem)

    def _failed(self, error: Any) -> AwayError | RefusedError:
        codes = self._kafka.KafkaError
        refused = (
            codes._AUTHENTICATION,
            codes.SASL_AUTHENTICATION_FAILED, codes.TOPIC_AUTHORIZATION_FAILED,
            codes.CLUSTER_AUTHORIZATION_FAILED, codes.UNKNOWN_TOPIC_OR_PART,
            codes.TOPIC_EXCEPTION,
        )  # fmt: skip
        heard = self._heard
        if error.code() not in refused and heard is not None:
            error = heard
        kind = RefusedError if error.code() in refused else AwayError
        return kind(f"topic {self._name}: {error.str()}")

    def add(self, messages: Sequence[tuple[Entry, bytes]]) -> Sent:
        too_large = self._kafka.KafkaError.MSG_SIZE_TOO_LARGE
        errors: dict[int, Any] = dict.fromkeys(range(len(messages)))  # None: nothing is said yet
        taken: set[int] = set()

        def told(number: int, error: Any) -> None:
            if error is None:
                taken.add(number)
            else:
                errors[number] = error

        for number, (entry, message) in enumerate(messages):
            reached = partial(told, number)
            try:
                self._producer.produce(
                    self._name,
                    message,
                    key=entry.url.encode(),
                    on_delivery=lambda error, _, reached=reached: reached(error),
                )
            except BufferError:  # the rest comes again
                break
            except self._kafka.KafkaException as error:
                errors[number] = error.args[0]
        self._producer.flush(2 * TIMEOUT_SECS)
        left = {number: error for number, error in errors.items() if number not in taken}
        rejected = {
            number: Unfit(f"{len(messages[number][1]):,} bytes: {error.str()}")
            for number, error in left.items()
            if error is not None and error.code() == too_large
        }
        again = [number for number in left if number not in rejected]
        if len(again) == len(messages):
            raise self._failed(next(filter(None, left.values()), self._timed_out()))
        return Sent(rejected, again)

    def _timed_out(self) -> Any:
        return self._kafka.KafkaError(self._kafka.KafkaError._MSG_TIMED_OUT)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(0)
            self._producer = None


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
            "kafka": _Kafka,
            "kafkas": _Kafka,
        }
        scheme = ""
        keep_secrets_of("LARM_STREAM_URL", url)
        with suppress(ValueError):
            parts = urlsplit(url)
            is_one = parts.scheme.startswith("kafka") or parts.port != 0
            scheme = parts.scheme if parts.hostname and is_one else ""
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
