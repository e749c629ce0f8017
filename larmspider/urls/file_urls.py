"""URLs of files: ``file:///srv/share/My%20plan.odt``, below the folders of LARM_FILE_ROOTS.

>>> path_of("file:///srv/a%20b"), url_of(b"/srv/a b")
(b'/srv/a b', 'file:///srv/a%20b')

A folder ends in a slash. File names are bytes, and need not be UTF-8: each byte that is not a
character of a URL's path is an escape (RFC 8089 4).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote_to_bytes

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.urls.schemes import is_source

if TYPE_CHECKING:
    from larmspider.options import Settings

SCHEME = "file:"
FILES = "file://"
"""Stands for the host of all files: in the frontier, LARM_HOST_RULES and LARM_SEARCH_GROUPS."""
FROM = "from="
"""A large folder is listed in parts. The query of each part after the first names where the part
begins."""

_OPENED = ("https://", "http://", "smb://", "davs://", "dav://", "file://")


def is_file(url: str) -> bool:
    """Whether ``url``, in canonical form or as it is fetched, names a file."""
    return url.startswith(SCHEME)


def is_archive(url: str) -> bool:
    """Whether ``url`` names a WARC file by its ending."""
    return is_file(url) and url.lower().endswith((".warc", ".warc.gz"))


def path_of(url: str) -> bytes:
    """The path of a file URL, without its query."""
    return unquote_to_bytes(url.removeprefix(FILES).partition("?")[0])


def url_of(path: bytes) -> str:
    """The URL, in canonical form, of an absolute path."""
    return FILES + quote(path, safe="/!$&'()*+,;=:@~")


class FileRoots:
    """The folders that may be crawled, each with where it really is."""

    def __init__(self, roots: Sequence[bytes] = ()) -> None:
        """``roots`` are absolute paths."""
        self.roots = [b"/" if root == b"/" else root.rstrip(b"/") for root in roots]

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """LARM_FILE_ROOTS. Raises ConfigError for a path that is not absolute."""
        roots = [
            os.path.normpath(Path(root).expanduser())
            for root in options.strings(settings, "LARM_FILE_ROOTS")
        ]
        for root in roots:
            if not root.startswith("/") or "\0" in root:
                raise ConfigError(f"LARM_FILE_ROOTS={root}: expected absolute paths of folders")
        return cls([os.fsencode(root) for root in roots])

    def __bool__(self) -> bool:
        return bool(self.roots)

    def of(self, path: bytes) -> bytes | None:
        """The longest root that contains ``path``; None if no root does."""
        found = [root for root in self.roots if _lies_in(path, root)]
        return max(found, key=len, default=None)

    def place_of(self, real: bytes) -> bytes | None:
        """The path, below a root as the settings spell it, of a ``real`` path without symbolic
        links; None if that lies in no root."""
        for root in self.roots:
            real_root = os.path.realpath(root)
            if _lies_in(real, real_root):
                return os.path.join(root, real[len(real_root) :].lstrip(b"/")).rstrip(b"/") or b"/"
        return None

    def why_not(self, url: str) -> str:
        """Why a file URL is not crawled; "" if it is."""
        if not self.roots:
            return "files are crawled below LARM_FILE_ROOTS, which names no folder"
        if self.of(path_of(url)) is None:
            return "no file below LARM_FILE_ROOTS"
        return ""


def _lies_in(path: bytes, root: bytes) -> bool:
    return path.rstrip(b"/") == root or path.startswith(root.rstrip(b"/") + b"/")


class OpenableUrls:
    """LARM_FILE_URLS: where readers find files, by the beginning of their URLs.

    >>> OpenableUrls({"file:///srv/share/": "smb://nas/share/"})("file:///srv/share/a.odt")
    'smb://nas/share/a.odt'
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Read the table from the settings. Raises ConfigError for a value of another form."""
        places = options.mapping(settings, "LARM_FILE_URLS")
        for begin, place in places.items():
            if not is_source(begin) or not begin.endswith("/"):
                raise ConfigError(
                    f"LARM_FILE_URLS={begin}: expected the URL of a folder, as file:///srv/share/"
                    " or smb://nas/share/"
                )
            if not isinstance(place, str) or not place.startswith(_OPENED):
                raise ConfigError(
                    f"LARM_FILE_URLS={begin}: {place}: expected a URL that begins with"
                    f" {', '.join(_OPENED)}"
                )
        return cls(places)

    def __call__(self, url: str) -> str:
        """The URL that a reader can open; "" for a file that is mapped to no URL. Other URLs stay
        unchanged."""
        if not is_source(url):
            return url
        for begin, place in self._places:
            if url.startswith(begin):
                return place + url[len(begin) :]
        return ""


NOWHERE = OpenableUrls({})
