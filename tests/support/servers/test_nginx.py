"""The nginx of the tests serves folders by address, logs what it is asked, and leaves nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.support.servers.docs_sites import DOCS_SITES, docs_site
from tests.support.servers.nginx import NGINX, Nginx

needs_nginx = pytest.mark.skipif(
    NGINX is None, reason="nginx is not installed (Debian package nginx-light)"
)


def _read(url: str) -> str:
    with urlopen(url, timeout=10) as response:
        return str(response.read(), "utf-8")


def test_each_address_has_its_folder(nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    """Two addresses, one port, two sites, and one log with the address in it."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)
    server = nginx({"127.0.0.1": tmp_path / "one", "127.0.0.2": tmp_path / "two"})
    assert _read(server.url()) == "one"
    assert _read(server.url("127.0.0.2", "/index.html?x=1")) == "two"
    first, second = server.requests(at_least=2)
    assert (first.address, first.target, first.status, first.sent) == ("127.0.0.1", "/", 200, 3)
    assert (second.address, second.target) == ("127.0.0.2", "/index.html?x=1")
    assert first.time <= second.time
    assert second.user_agent.startswith("Python-urllib")


def test_a_folder_is_not_listed(nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    """Autoindex is off: 403 without an index.html."""
    server = nginx({"127.0.0.1": tmp_path})
    with pytest.raises(HTTPError, match="403") as caught:
        _read(server.url())
    caught.value.close()


def test_takes_the_inside_of_a_server_block(nginx: Callable[..., Nginx]) -> None:
    """For what a folder cannot do."""
    server = nginx({"127.0.0.3": 'location / { return 200 "by hand"; }'})
    assert _read(server.url()) == "by hand"


def _living(group: int) -> list[str]:
    """The processes of a group, without the dead ones that nobody has taken note of yet."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().rpartition(")")
        except OSError:  # it ended while we looked
            continue
        state, _, process_group = fields.split()[:3]
        if int(process_group) == group and state not in "ZX":
            found.append(name)
    return found


@needs_nginx
@pytest.mark.parametrize("stuck", [False, True])
def test_ends_with_its_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: bool
) -> None:
    """Master and workers are gone, and so is the folder, even if the master does not obey."""
    monkeypatch.setattr("tests.support.servers.processes.STOP_SECS", 0.0 if stuck else 5.0)
    (tmp_path / "index.html").write_text("up")
    with Nginx({"127.0.0.1": tmp_path}) as server:
        pid, folder = server.pid, server.folder
        assert _read(server.url()) == "up"
        assert len(_living(pid)) == 2
        if stuck:
            os.kill(pid, signal.SIGSTOP)
    assert _living(pid) == []
    assert not folder.exists()
    assert server.pid == 0


def test_waits_for_the_log(
    nginx: Callable[..., Nginx], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Requests that never came are an error, not a shorter list."""
    monkeypatch.setattr("tests.support.servers.nginx._LOG_SECS", 0.01)
    server = nginx({"127.0.0.1": tmp_path})
    assert server.requests() == []
    with pytest.raises(TimeoutError, match="0 of 1"):
        server.requests(at_least=1)


@needs_nginx
def test_says_why_it_did_not_start() -> None:
    """nginx's own message, and nothing left running."""
    server = Nginx({"127.0.0.1": "no_such_directive;"})
    with pytest.raises(RuntimeError, match="unknown directive"):
        server.__enter__()
    assert server.pid == 0


@pytest.mark.parametrize("package", DOCS_SITES)
def test_serves_real_documentation(nginx: Callable[..., Nginx], package: str) -> None:
    """The start page of a Debian documentation package."""
    server = nginx({"127.0.0.1": docs_site(package)})
    assert "<title>" in _read(server.url())
