"""ObjectsReceiver: bodies by content hash in S3 and alike, and manifests that say whose they are.

    AWS_ACCESS_KEY_ID=... LARM_OBJECTS_URL=s3://bucket/intranet scrapy crawl intranet ...

    objects/2f/2fd4e1c6...                      a body, once, named for its SHA-1
    manifests/1767182400000000-9f86d081.jsonl   a line a page or removal: url, stamp, digest, ...

The line with the largest stamp counts for a URL, among the lines of all manifests; lines that come
twice are equal. An object may belong to several pages, so none is deleted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.pipelines.outbox.receiver import AwayError, Receiver, RefusedError, Sent
from larmspider.pipelines.outbox.spool import Entry
from larmspider.redaction import keep_secrets_of, keep_secrets_of_environment, told

if TYPE_CHECKING:
    from larmspider.options import Settings

THREADS = 16
TIMEOUT_SECS = 30
_SCHEMES = ("s3", "gs", "az", "file")
_CLIENT = {"timeout": f"{TIMEOUT_SECS}s", "connect_timeout": "10s", "allow_http": True}
_NO_RETRY = {"max_retries": 0, "retry_timeout": timedelta(seconds=TIMEOUT_SECS)}
"""The sender retries, so the library must not."""
_SAID = re.compile(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", re.DOTALL)
_STATUS = re.compile(r"status code: (4\d\d)")
_CAUSE = re.compile(r'(?:message|error): "(.*?)"')
LEFT_OUT = ("text", "links", "at", "body")
"""Fields that a line of a manifest lacks; the body has them."""


class ObjectsReceiver(Receiver):
    """Writes below LARM_OBJECTS_URL."""

    settings = ("LARM_OBJECTS_URL",)
    look_at = "LARM_OBJECTS_URL and the environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, ...)"
    max_bytes = 64_000_000

    def __init__(self, url: str) -> None:
        """Raises ConfigError."""
        keep_secrets_of("LARM_OBJECTS_URL", url)
        keep_secrets_of_environment()
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not (parts.netloc or parts.path) or "@" in parts.netloc:
            raise ConfigError(
                f"LARM_OBJECTS_URL={parts.scheme + '://...' if parts.scheme else ''}: expected"
                " s3://bucket/folder, gs://, az:// or file:///folder, and credentials in the"
                " environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for example)"
            )
        try:
            import obstore.exceptions
            import obstore.store
        except ImportError:
            raise ConfigError(
                "LARM_OBJECTS_URL needs obstore: pip install 'larmspider[objects]'"
            ) from None
        more: dict[str, Any] = {"mkdir": True} if parts.scheme == "file" else {
            "client_options": _CLIENT, "retry_config": _NO_RETRY,
        }  # fmt: skip
        self._errors = obstore.exceptions
        try:
            self._objects = obstore.store.from_url(url, **more)
        except (self._errors.BaseError, OSError) as error:  # OSError: no such folder can be made
            raise ConfigError(f"LARM_OBJECTS_URL={told(url)}: {_in_words(error)}") from None
        self._pool: ThreadPoolExecutor | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(options.text(settings, "LARM_OBJECTS_URL").strip())

    def connect(self) -> None:
        self._put("larmspider.json", b'{"format": 1}\n')

    def _put(self, path: str, body: bytes | Path) -> None:
        try:
            self._objects.put(path, body)
        except (self._errors.PermissionDeniedError, self._errors.UnauthenticatedError) as error:
            raise RefusedError(_in_words(error)) from None
        except self._errors.BaseError as error:
            status = _STATUS.search(str(error))
            waits = status is None or status[1] in ("408", "429")
            raise (AwayError if waits else RefusedError)(_in_words(error)) from None
        except OSError as error:
            raise AwayError(str(error)) from None

    def send(self, batch: Sequence[Entry]) -> Sent:
        bodies: dict[str, bytes | Path] = {}
        lines = []
        for entry in batch:
            line = {name: value for name, value in entry.page.items() if name not in LEFT_OUT}
            if entry.removed is None:
                digest, body = entry.page.get("digest", ""), entry.body_file or entry.body
                if isinstance(body, bytes):
                    digest = hashlib.sha1(body, usedforsecurity=False).hexdigest()
                line["digest"], bodies[digest] = digest, body
            lines.append(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS)
        names = (f"objects/{digest[:2]}/{digest}" for digest in bodies)
        list(self._pool.map(self._put, names, bodies.values()))
        manifest = b"".join(lines)  # written after the bodies that it names
        name = hashlib.sha256(manifest).hexdigest()[:8]
        self._put(f"manifests/{batch[0].stamp}-{name}.jsonl", manifest)
        return Sent()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def _in_words(error: Exception) -> str:
    """One line of obstore's many."""
    if (said := _SAID.search(str(error))) is not None:
        return told(": ".join(part for part in said.groups() if part))
    line, _, source = str(error).partition("\n\nDebug source")
    cause = _CAUSE.search(source)
    return told(f"{line}{f': {cause[1]}' if cause else ''}")
