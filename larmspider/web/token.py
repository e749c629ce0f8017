"""The token that control asks for: LARM_WEB_TOKEN, or one of our own, kept in LARM_DIR/web.token.

The file is its owner's alone (mode 0600), so who may read the crawl's directory as that user may
control the crawl.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from larmspider.errors import ConfigError

TOKEN_FILE = "web.token"  # noqa: S105 - the name of a file
SHORTEST = 16


def checked_token(token: str) -> str:
    """A token of the settings. Raises ConfigError, which does not show it."""
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"LARM_WEB_TOKEN is not accepted: at least {SHORTEST} printable ASCII characters are,"
            " without spaces"
        )
    return token


def kept_token(directory: Path) -> str:
    """The one in the directory, made if there is none. Of workers that start together all have
    that of the first."""
    if token := found_token(directory):
        return token
    path = directory / TOKEN_FILE
    draft = path.with_name(f"{TOKEN_FILE}.{os.getpid()}")
    write_private(draft, secrets.token_urlsafe(24) + "\n")
    try:
        os.link(draft, path)
    except FileExistsError:
        if not found_token(directory):
            draft.replace(path)  # what lies there is none
    finally:
        draft.unlink(missing_ok=True)
    return found_token(directory)


def found_token(directory: Path) -> str:
    """The one in the directory; "" where there is none, or this user may not read it."""
    try:
        token = (directory / TOKEN_FILE).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
    return token if len(token) >= SHORTEST else ""


def write_private(path: Path, text: str) -> None:
    """Replace the file by one that only its owner may read, at once."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text)
    draft.replace(path)
