"""A documentation package that is absent skips its test, and says which one it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers.docs_sites import DOCS_SITES, docs_site


def test_an_absent_package_skips_with_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The reason names the package and the folder."""
    monkeypatch.setitem(DOCS_SITES, "python3.11-doc", tmp_path / "html")
    with pytest.raises(pytest.skip.Exception, match=r"python3\.11-doc is not installed: .*html"):
        docs_site("python3.11-doc")


def test_a_present_package_is_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder that holds index.html."""
    (tmp_path / "index.html").write_text("x")
    monkeypatch.setitem(DOCS_SITES, "python3.11-doc", tmp_path)
    assert docs_site("python3.11-doc") == tmp_path
