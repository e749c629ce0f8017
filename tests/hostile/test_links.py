"""Links and redirects that lead astray, and hosts with wrong names or certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.host_cases import HOSTS, TRUSTED
from tests.hostile.link_cases import LINKS
from tests.support.hostile.healthy import HEALTHY, is_complete
from tests.support.hostile.running import MORE_MB, crawl, differences
from tests.support.hostile.server import HostileServer


def test_each_case_ends_as_promised(
    tmp_path: Path, idle_mb: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same table of outcomes, and hosts out of scope are not asked."""
    bundle = tmp_path / "trusted.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with HostileServer([HEALTHY, *LINKS, *HOSTS]) as server:
        bundle.write_bytes(b"".join(TRUSTED))
        crawled = crawl(server.seeds(), tmp_path)
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.peak_mb < idle_mb + MORE_MB
