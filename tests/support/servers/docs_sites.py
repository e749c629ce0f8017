"""Real documentation sites on disk: folders of Debian packages, served by nginx in the tests.

with Nginx({"127.0.0.1": docs_site("postgresql-doc-15")}) as server: ...

They are large, real and always the same: broken markup, deep links and 41 KB a page on average.
"""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS_SITES = {
    "python3.11-doc": Path("/usr/share/doc/python3.11-doc/html"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
}
"""Debian package -> the folder of its pages."""


def docs_site(package: str) -> Path:
    """The folder of a package's pages; skips the test where the package is not installed."""
    folder = DOCS_SITES[package]
    if not (folder / "index.html").exists():
        pytest.skip(f"Debian package {package} is not installed: {folder} has no index.html")
    return folder
