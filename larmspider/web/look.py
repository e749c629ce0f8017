"""The look of the search for its readers: name, logo, colour and language.

    LARM_SEARCH_NAME = "Findus"
    LARM_SEARCH_LOGO = "/etc/larmspider/logo.svg"
    LARM_SEARCH_COLOUR = "#7a1f3d"
    LARM_SEARCH_LANGUAGE = "de"

A logo is a file of this machine, served by this server: the page loads nothing from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.web.words import LANGUAGES, Words

if TYPE_CHECKING:
    from larmspider.options import Settings

MAX_NAME = 60
"""Characters."""
MAX_LOGO_BYTES = 32_768
"""Most bytes of the logo, which every page of the search shows."""
LOGO, STYLE = "search-logo", "search-look.css"
"""Names below /static/."""
_COLOUR = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE)
_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (
        re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<(?:\?|!--|!DOCTYPE svg)[^>]*>\s*)*<svg[\s>]"),
        "image/svg+xml",
    ),
)


@dataclass(frozen=True, slots=True)
class Look:
    """``files`` are served below /static/: media type and content by name. ``language`` is one of
    words.LANGUAGES; "" follows each browser."""

    name: str = "larmspider"
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)
    language: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises ConfigError."""
        name = options.text(settings, "LARM_SEARCH_NAME").strip()
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise ConfigError(
                f"LARM_SEARCH_NAME={name[:MAX_NAME]!r}: expected 1 to {MAX_NAME} printable"
                " characters"
            )
        files = {}
        if path := options.text(settings, "LARM_SEARCH_LOGO"):
            files[LOGO] = _logo(path)
        if colour := options.text(settings, "LARM_SEARCH_COLOUR"):
            if not _COLOUR.fullmatch(colour):
                raise ConfigError(f"LARM_SEARCH_COLOUR={colour}: expected a colour such as #7a1f3d")
            files[STYLE] = ("text/css; charset=utf-8", _style(colour).encode())
        language = options.choice(settings, "LARM_SEARCH_LANGUAGE", ("", *LANGUAGES))
        return cls(name, files, language)

    def words(self, accept_language: str) -> Words:
        """The words for a browser that sends this header."""
        return Words(self.language) if self.language else Words.asked_for(accept_language)

    @property
    def logo(self) -> str:
        """The path of the logo; "" without a logo."""
        return f"/static/{LOGO}" if LOGO in self.files else ""

    @property
    def style(self) -> str:
        """The path of a style sheet on top of the others; "" for none."""
        return f"/static/{STYLE}" if STYLE in self.files else ""


def _logo(path: str) -> tuple[str, bytes]:
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(MAX_LOGO_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"LARM_SEARCH_LOGO={path}: cannot be read: {why}") from None
    if len(content) > MAX_LOGO_BYTES:
        raise ConfigError(
            f"LARM_SEARCH_LOGO={path}: expected a file of at most {MAX_LOGO_BYTES:,} bytes"
        )
    for signature, kind in _IMAGES:
        if signature.match(content):
            return kind, content
    raise ConfigError(f"LARM_SEARCH_LOGO={path}: expected an SVG, PNG, JPEG, WebP or GIF image")


def _style(colour: str) -> str:
    """Buttons have this colour, and text on it that can be read (WCAG 2.2, 1.4.3: one of black and
    white has a contrast of 4.5 or more with any colour)."""
    ink = "#fff" if _luminance(colour) < 0.179 else "#000"
    return f":root {{ --accent: {colour}; --accent-text: {ink}; }}\n"


def _luminance(colour: str) -> float:
    """The luminance of a colour by WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    values = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
