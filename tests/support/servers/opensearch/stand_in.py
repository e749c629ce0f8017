"""A strict stand-in for OpenSearch: a real one (cluster.py) cannot be made to give every answer.

It gives half an answer, or 429 at a given time, and asks for a password. It keeps
documents in memory. What OpenSearch would refuse of bulk requests, it refuses.

    with OpenSearchServer() as server:
        server.faults.append("429")         # what goes wrong with the next _bulk
        server.documents("intranet")        # by id
"""

from __future__ import annotations

import json
import re
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

USER, PASSWORD = "larm", "s3cr3t"
_AUTHORIZATION = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_BULK_FIELDS = {"_id", "_index", "version", "version_type", "routing", "require_alias"}


class Index:
    def __init__(self, definition: dict[str, Any]) -> None:
        self.mappings = definition.get("mappings", {})
        self.settings = definition.get("settings", {})
        self.aliases = set(definition.get("aliases", {}))
        self.documents: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}


class OpenSearchServer:
    def __init__(self, max_bytes: int = 100_000_000) -> None:
        """``max_bytes``: http.max_content_length."""
        self.max_bytes = max_bytes
        self.faults: list[str] = []
        """429, 503, cut (half an answer, after it was done), html, item-429, item-full."""
        self.is_shard_away = False
        """Whether no document can be read."""
        self.indexes: dict[str, Index] = {}
        self.requests: list[str] = []
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    def url(self, name: str = "intranet", password: str = PASSWORD) -> str:
        return f"http://{USER}:{password}@127.0.0.1:{self.port}/{name}"

    def documents(self, name: str) -> dict[str, dict[str, Any]]:
        return self._named(name)[0].documents

    def _named(self, name: str) -> list[Index]:
        by_name = [self.indexes[name]] if name in self.indexes else []
        return by_name + [one for one in self.indexes.values() if name in one.aliases]

    def answer(self, method: str, target: str, kind: str, body: bytes) -> tuple[int, Any]:
        url = urlsplit(target)
        with self._lock:
            self.requests.append(f"{method} {url.path}")
            if found := re.fullmatch(r"/([^/_][^/]*)", url.path):
                return self._make(method, found[1], kind, body)
            if (found := re.fullmatch(r"/([^/_][^/]*)/_bulk", url.path)) and method == "POST":
                return self._bulk(found[1], parse_qs(url.query), kind, body)
            if found := re.fullmatch(r"/([^/_][^/]*)/_mget", url.path):
                return self._get(found[1], json.loads(body)["ids"])
        return 400, _error(400, "illegal_argument_exception", f"no handler for {target}")

    def _get(self, name: str, ids: list[str]) -> tuple[int, Any]:
        if self.is_shard_away:
            error = _error(503, "no_shard_available_action_exception")["error"]
            return 200, {"docs": [{"_id": key, "error": error} for key in ids]}
        found = ((key, self.documents(name).get(key)) for key in ids)
        docs = [{"_id": key, "found": one is not None, "_source": one} for key, one in found]
        return 200, {"docs": docs}

    def _make(self, method: str, name: str, kind: str, body: bytes) -> tuple[int, Any]:
        if method == "GET":
            indexes = {
                one: {"mappings": index.mappings, "settings": {"index": index.settings}}
                for one, index in self.indexes.items()
                if index in self._named(name)
            }
            return (200, indexes) if indexes else (404, _error(404, "index_not_found_exception"))
        if method != "PUT" or kind != "application/json":
            return 405, _error(405, "method")
        if name in self.indexes:
            return 400, _error(400, "resource_already_exists_exception", name)
        if name != name.lower() or name.startswith(("-", "+")):
            return 400, _error(400, "invalid_index_name_exception", name)
        definition = json.loads(body)
        if unknown := definition.keys() - {"mappings", "settings", "aliases"}:
            return 400, _error(400, "parse_exception", f"unknown key {unknown}")
        self.indexes[name] = Index(definition)
        return 200, {"acknowledged": True, "index": name}

    def _bulk(
        self, name: str, query: dict[str, list[str]], kind: str, body: bytes
    ) -> tuple[int, Any]:
        fault = self.faults.pop(0) if self.faults else ""
        if len(body) > self.max_bytes:
            return 413, "Request Entity Too Large"
        if kind not in ("application/x-ndjson", "application/json"):
            return 406, _error(406, "media_type_header_exception")
        if fault in ("429", "503"):
            return int(fault), _error(int(fault), "es_rejected_execution_exception", "queue full")
        if not body.endswith(b"\n"):
            return 400, _error(400, "illegal_argument_exception", "must end with a newline")
        lines, items, at = body.split(b"\n")[:-1], [], 0
        while at < len(lines):
            ((action, about),) = json.loads(lines[at]).items()
            if action not in ("index", "delete", "create", "update") or about.keys() - _BULK_FIELDS:
                return 400, _error(400, "illegal_argument_exception", f"line {at + 1}")
            source = json.loads(lines[at + 1]) if action != "delete" else None
            at += 1 if action == "delete" else 2
            items.append({action: self._act(name, query, action, about, source)})
        if fault in ("item-429", "item-full"):
            ((action, item),) = items[0].items()
            kind = "cluster_block_exception" if fault == "item-full" else "es_rejected_execution"
            status = 403 if fault == "item-full" else 429
            # nothing of the first one was done
            self._named(name)[0].documents.pop(item["_id"], None)
            self._named(name)[0].versions.pop(item["_id"], None)
            items[0] = {action: {"_id": item["_id"], **_error(status, kind, "[FORBIDDEN/12]")}}
        errors = any(item["status"] >= 300 for one in items for item in one.values())
        found = {"took": 1, "errors": errors, "items": items}
        if fault == "cut":
            return -200, found
        return (200, "<html>a proxy</html>") if fault == "html" else (200, found)

    def _act(
        self, name: str, query: dict[str, list[str]], action: str, about: Any, source: Any
    ) -> dict[str, Any]:
        key = about["_id"]
        if len(key.encode()) > 512:
            return {"_id": key, **_error(400, "illegal_argument_exception", "id is too long")}
        alias = query.get("require_alias") == ["true"]
        found = [one for one in self._named(name) if not alias or name in one.aliases]
        if alias and not found:
            return {"_id": key, **_error(404, "index_not_found_exception", name)}
        if not found:  # action.auto_create_index
            self.indexes[name] = Index({})
            found = [self.indexes[name]]
        (index,) = found
        version, there = about.get("version"), index.versions.get(key)
        assert about.get("version_type") == "external_gte"
        if there is not None and version < there:
            why = f"current version [{there}] is higher than the one provided [{version}]"
            return {"_id": key, **_error(409, "version_conflict_engine_exception", why)}
        index.versions[key] = version
        gone = index.documents.pop(key, None)
        if action == "delete":
            return {"_id": key, "result": "deleted", "status": 200 if gone else 404}
        index.documents[key] = source
        return {"_id": key, "result": "updated" if gone else "created", "status": 201}

    def __enter__(self) -> Self:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Authorization") != _AUTHORIZATION:
                    status, found = 401, _error(401, "security_exception", "unable to authenticate")
                else:
                    kind = self.headers.get("Content-Type", "")
                    status, found = server.answer(self.command, self.path, kind, body)
                said = (found if isinstance(found, str) else json.dumps(found)).encode()
                self.send_response(abs(status))
                self.send_header("Content-Length", str(len(said)))
                if status in (429, 503):
                    self.send_header("Retry-After", "7")
                self.end_headers()
                self.wfile.write(said[: len(said) // 2] if status < 0 else said)
                self.close_connection = status < 0

            do_GET = do_PUT = do_POST = do_DELETE = do  # noqa: N815 - http.server's names

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _error(status: int, kind: str, reason: str = "") -> dict[str, Any]:
    return {"error": {"type": kind, "reason": reason}, "status": status}
