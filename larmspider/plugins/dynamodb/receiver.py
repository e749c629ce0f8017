"""DynamoDbReceiver: a wide-column table by DynamoDB's API, a row for each URL, columns by time.

    AWS_ACCESS_KEY_ID=... AWS_DEFAULT_REGION=eu-central-1 \
        LARM_DYNAMODB_TABLE=intranet scrapy crawl intranet ...

    row                            time
    example.wiki:http/Start?a=1    2026-01-31T12:00:00.000000Z             a version, or a removal
    example.wiki:http/large.pdf    2026-01-31T12:00:01.000000Z             one above 400 KB: its
    example.wiki:http/large.pdf    2026-01-31T12:00:01.000000Z body 0000   first item, then pieces

A version is an item for ever, named by URL and stamp: a repeated version changes nothing, and a
late one sorts before newer ones. A removal deletes the versions before it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.formatting import utc
from larmspider.pipelines.outbox.receiver import (
    AwayError,
    BatchError,
    Receiver,
    RefusedError,
    Sent,
    Unfit,
)
from larmspider.pipelines.outbox.spool import PAGE_FIELDS, Entry
from larmspider.redaction import keep_secret, told

if TYPE_CHECKING:
    from larmspider.options import Settings

_DEFINED = "AttributeDefinitions"
KEYS = {
    _DEFINED: [{"AttributeName": name, "AttributeType": "S"} for name in ("row", "time")],
    "KeySchema": [
        {"AttributeName": "row", "KeyType": "HASH"},
        {"AttributeName": "time", "KeyType": "RANGE"},
    ],
}
BILLING = "PAY_PER_REQUEST"
THREADS = 8
PAUSES = (0.1, 0.3, 1.0, 3.0, 0.0)
"""Seconds until unprocessed items are sent again; after the last one the sender waits longer."""
WRITES = 25
"""Items of one BatchWriteItem."""
ITEM_BYTES, PIECE_BYTES, ROW_BYTES = 400_000, 400_000, 2048
"""An item may have 409,600 with its names, a row key 2,048."""
MAKE_SECS = 60.0
REPLY_BYTES, REPLY_SECS = 32_000_000, 60
"""Limits of an answer: it may send back 16 MB of unprocessed items, in base64."""
MAX_PAGES = 10_000
"""A page of a query has up to 1 MB of the versions of one row."""
_NONSENSE = "its answer does not fit the question"
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_BUSY = frozenset({
    "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded",
    "LimitExceededException", "ResourceInUseException",
})  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOST, _ADDRESS = re.compile(r"(.*?)(:[0-9]+)?"), re.compile(r"[0-9.]+|\[.*")
_NEEDS = " (AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY of the environment)"
Write = tuple[int, Mapping[str, Any]]
"""The number of an entry, and its separate request for BatchWriteItem."""


class _BusyError(AwayError): ...


class _NoTableError(AwayError):
    """connect() makes it."""


class DynamoDbReceiver(Receiver):
    """Writes to the table LARM_DYNAMODB_TABLE."""

    settings = ("LARM_DYNAMODB_TABLE",)
    look_at = "AWS_ENDPOINT_URL, AWS_DEFAULT_REGION and LARM_DYNAMODB_TABLE"

    def __init__(self, table: str) -> None:
        """Raises ConfigError."""
        if not _TABLE.fullmatch(table):
            raise ConfigError(
                f"LARM_DYNAMODB_TABLE={table}: expected the name of a table, 3 to 255 of A-Z a-z"
                " 0-9 _ . - (endpoint and credentials come from the environment: AWS_ENDPOINT_URL,"
                " AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
            )
        try:
            import botocore.config
            import botocore.exceptions
            import botocore.session
        except ImportError:
            raise ConfigError(
                "LARM_DYNAMODB_TABLE needs botocore: pip install 'larmspider[dynamodb]'"
            ) from None
        self._botocore, self.table = botocore, table
        self._client: Any = None
        self._pool: ThreadPoolExecutor | None = None
        self._busy = ""
        """The last reason of the server for being busy."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(options.text(settings, "LARM_DYNAMODB_TABLE").strip())

    def connect(self) -> None:
        config = self._botocore.config.Config(
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=THREADS,
            retries={"total_max_attempts": 1},  # the sender does that
        )
        try:
            session = self._botocore.session.get_session()
            self._client = session.create_client("dynamodb", config=config)
            self._client._endpoint.http_session = _Limited(self._client._endpoint.http_session)
            keep_secret(*_secrets_of(session))
        except (self._botocore.exceptions.BotoCoreError, ValueError) as error:  # no region
            raise RefusedError(f"{error}{_NEEDS}") from None
        self._pool = ThreadPoolExecutor(THREADS)
        try:
            table = self._found()
        except _NoTableError:
            with suppress(_BusyError):  # another worker makes it
                self._ask("create_table", TableName=self.table, **KEYS, BillingMode=BILLING)
            table = self._found()
        last = time.monotonic() + MAKE_SECS
        while table["TableStatus"] not in ("ACTIVE", "UPDATING"):
            if time.monotonic() > last:
                raise AwayError(f"the table {self.table} is {table['TableStatus']}")
            time.sleep(0.2)
            table = self._found()

    def _found(self) -> Any:
        """The table. Raises RefusedError if it has another key."""
        try:
            table = self._ask("describe_table", TableName=self.table)["Table"]
            types = {one["AttributeName"]: one["AttributeType"] for one in table[_DEFINED]}
            names = [one["AttributeName"] for one in table["KeySchema"]]
            key = [(name, types[name]) for name in names]
            table["TableStatus"]
        except (KeyError, TypeError, AttributeError):
            raise AwayError(_NONSENSE) from None
        if key != [("row", "S"), ("time", "S")]:
            found = ", ".join(f"{name} ({kind})" for name, kind in key)
            raise RefusedError(
                f"the table {self.table} has the key {found}, expected row (S), time (S); name a"
                " table that does not exist yet; it is created"
            )
        return table

    def _ask(self, action: str, **arguments: Any) -> Any:
        """Raises AwayError, RefusedError, BatchError."""
        errors = self._botocore.exceptions
        try:
            return getattr(self._client, action)(**arguments)
        except errors.ClientError as error:
            code = str(error.response["Error"].get("Code", ""))
            said = f"{code}: {error.response['Error'].get('Message') or action}"
            said = told(said, 2_000)
            if len(said) > 300:  # it quotes the refused item
                said = f"{said[:100]} ... {said[-190:]}"
            status = error.response["ResponseMetadata"].get("HTTPStatusCode", 0)
            if code == "ResourceNotFoundException":
                raise _NoTableError(said) from None
            if code in _BUSY or status >= 500:
                raise (_BusyError if code in _BUSY else AwayError)(said) from None
            invalid = code in ("ValidationException", "SerializationException") or status == 413
            is_batch = action == "batch_write_item"
            if invalid and is_batch:
                raise BatchError(said, unfit=status == 413) from None
            raise RefusedError(said) from None
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
            raise RefusedError(f"{error}{_NEEDS}") from None
        except errors.BotoCoreError as error:
            raise AwayError(str(error)) from None
        except (RecursionError, ValueError, TypeError, KeyError, AttributeError):  # no JSON of it
            raise AwayError(_NONSENSE) from None

    def send(self, batch: Sequence[Entry]) -> Sent:
        rejected: dict[int, str] = {}
        pieces: list[Write] = []
        heads: list[Write] = []
        for number, entry in enumerate(batch):
            if (length := len(row_of(entry.url).encode())) > ROW_BYTES:
                why = f"its row key has {length:,} bytes, more than {ROW_BYTES:,}"
                rejected[number] = Unfit(why)
                continue
            head, *more = ({"PutRequest": {"Item": _attributes(one)}} for one in items(entry))
            heads.append((number, head))
            pieces += ((number, one) for one in more)
        again = self._write(pieces)  # before their first items
        again |= self._write([one for one in heads if one[0] not in again])
        for number, entry in enumerate(batch):
            if entry.removed is not None and number not in again and number not in rejected:
                again |= self._write([(number, one) for one in self._before(entry)])
        if again and len(again) + len(rejected) == len(batch):
            raise AwayError(f"it is busy: {self._busy}")
        return Sent(rejected, again)

    def _before(self, entry: Entry) -> Iterator[Mapping[str, Any]]:
        """Requests that take away the older versions of a row."""
        values = {":row": {"S": row_of(entry.url)}, ":time": {"S": _time_of(entry)}}
        query = {
            "TableName": self.table,
            "KeyConditionExpression": "#row = :row AND #time < :time",
            "ProjectionExpression": "#row, #time",
            "ExpressionAttributeNames": {"#row": "row", "#time": "time"},
            "ExpressionAttributeValues": values,
        }
        for _ in range(MAX_PAGES):
            found = self._ask("query", **query)
            for key in found.get("Items") or ():
                if key.keys() != {"row", "time"} or key["row"] != values[":row"]:
                    raise AwayError(_NONSENSE)
                yield {"DeleteRequest": {"Key": key}}
            last = found.get("LastEvaluatedKey")
            if not last:
                return
            if last == query.get("ExclusiveStartKey"):
                break
            query["ExclusiveStartKey"] = last
        raise AwayError(f"{_NONSENSE}: it has no last page")

    def _write(self, writes: Sequence[Write]) -> set[int]:
        """The numbers of the writes that were not complete."""
        parts = [writes[start : start + WRITES] for start in range(0, len(writes), WRITES)]
        assert self._pool is not None
        return set().union(*self._pool.map(self._write_part, parts))

    def _write_part(self, part: Sequence[Write]) -> Iterable[int]:
        numbers = {_key(request): number for number, request in part}
        left = [request for _, request in part]
        for pause in PAUSES:
            try:
                answer = self._ask("batch_write_item", RequestItems={self.table: left})
            except _BusyError as error:
                self._busy = str(error)
            else:
                self._busy = f"{self.table} leaves items unprocessed"
                left = answer.get("UnprocessedItems", {}).get(self.table, [])
                try:
                    unknown = {_key(request) for request in left} - numbers.keys()
                except (KeyError, TypeError, ValueError, AttributeError):
                    unknown = {("", "")}
                if unknown:
                    raise AwayError(_NONSENSE)
            if not left:
                break
            time.sleep(pause)
        return {numbers[_key(request)] for request in left}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        if self._client is not None:
            self._client.close()
            self._client = None


class _Limited:
    """botocore's way to a server, with an end to each answer: its own reads whatever comes."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def send(self, request: Any) -> Any:
        request.stream_output = True  # else all is read before it returns
        response = self._inner.send(request)
        try:
            response._content = self._read(response.raw)
        except AwayError:
            response.raw.close()
            raise
        except Exception as error:  # noqa: BLE001 - of urllib3: half an answer
            raise AwayError(str(error)) from None
        return response

    def _read(self, raw: Any) -> bytes:
        last, said = time.monotonic() + REPLY_SECS, bytearray()
        read = getattr(raw, "read1", raw.read)  # read() waits until all of a part is there
        while part := read(65_536):
            said += part
            if len(said) > REPLY_BYTES:
                raise AwayError(f"its answer has more than {REPLY_BYTES:,} bytes")
            if time.monotonic() > last:
                raise AwayError(f"its answer was not there after {REPLY_SECS} s")
        return bytes(said)

    def close(self) -> None:
        self._inner.close()


def _secrets_of(session: Any) -> Iterator[str]:
    """The secrets that botocore found in the environment or a file."""
    found = session.get_credentials()
    if found is not None:
        yield from filter(None, (found.secret_key, found.token))


def _key(request: Mapping[str, Any]) -> tuple[str, str]:
    ((_, about),) = request.items()
    found = about.get("Item") or about["Key"]
    return found["row"]["S"], found["time"]["S"]


def row_of(url: str) -> str:
    """The host backwards, then scheme, port and path, as Nutch's tables have it.

    >>> row_of("https://wiki.example:8443/Start?a=1")
    'example.wiki:https:8443/Start?a=1'
    """
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    found = _HOST.fullmatch(authority)
    host, port = found.groups("") if found is not None else (authority, "")
    if not _ADDRESS.fullmatch(host):
        host = ".".join(reversed(host.split(".")))
    return f"{host}:{scheme}{port}{slash}{path}"


def _time_of(entry: Entry) -> str:
    stored = _EPOCH + timedelta(microseconds=entry.stamp)
    return stored.isoformat(timespec="microseconds")[:26] + "Z"


def items(entry: Entry) -> list[dict[str, Any]]:
    """The first item of a version, and the pieces that do not fit into it."""
    key = {"row": row_of(entry.url), "time": _time_of(entry)}
    head: dict[str, Any] = key | {"url": entry.url, "stamp": entry.stamp}
    if entry.removed is not None:
        return [head | {"removed": entry.removed or "?"}]
    head |= {name: entry.page.get(name) for name in PAGE_FIELDS if name != "text"}
    head["size"] = entry.size
    for name in ("fetched", "modified"):
        when = head.pop(name)
        with suppress(ValueError, OverflowError):
            if when:
                head[name] = utc(when)
    links = json.dumps([link._asdict() for link in entry.links])
    head = {name: value for name, value in head.items() if value not in (None, "", {}, [])}
    room = ITEM_BYTES - len(json.dumps(head, ensure_ascii=True))
    pieces = []
    text = entry.page.get("text") or ""
    for name, value in (("body", entry.body), ("text", text), ("links", links)):
        packed = value if isinstance(value, bytes) else value.encode()
        if len(packed) <= room:
            head |= {name: value} if packed else {}
            room -= len(packed)
            continue
        parts = range(0, len(packed), PIECE_BYTES)
        head[f"{name}_pieces"] = len(parts)
        for number, start in enumerate(parts):
            about = {"row": key["row"], "time": f"{key['time']} {name} {number:04d}"}
            pieces.append(about | {"piece": packed[start : start + PIECE_BYTES]})
    return [head, *pieces]


def _attributes(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _attribute(value) for name, value in item.items()}


def _attribute(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int() | float():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case str():
            return {"S": value}
        case dict():
            return {"M": _attributes(value)}
        case _:
            return {"L": list(map(_attribute, value))}
