"""One provider for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.oidc import OidcServer


@pytest.fixture(scope="session")
def oidc() -> Iterator[OidcServer]:
    with OidcServer() as server:
        yield server
