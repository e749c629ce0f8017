"""What a page says about itself: ``<meta name=robots content="noindex, nofollow">``.

Each function reads one value, returns something harmless for nonsense and never raises.
"""

from __future__ import annotations

import re

ROBOTS_META_NAMES = ("robots", "larmspider")
"""Names of the meta elements whose directives are obeyed, lower case."""

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{1,8}){0,7}")
# HTML 4.2.5.3, "shared declarative refresh steps". The url= may be missing, a quote left open.
_REFRESH = re.compile(
    r"[\t\n\f\r ]*([0-9.]+)[;,\t\n\f\r ][\t\n\f\r ]*[;,]?[\t\n\f\r ]*"
    r"(?:url[\t\n\f\r ]*=[\t\n\f\r ]*)?(?:\"([^\"]*)|'([^']*)|(.*))",
    re.IGNORECASE | re.DOTALL,
)


def language_tag(value: str) -> str | None:
    """``value`` as a language tag in lower case ("de-at"), None if it is none.

    ``de_AT`` is what many write for ``de-AT`` and read as such. A list ("de, en") names the
    languages of the readers, not of the text: None.
    """
    tag = value.strip().lower().replace("_", "-")
    return tag if _LANGUAGE.fullmatch(tag) else None


def robots_directives(name: str, content: str) -> tuple[bool, bool]:
    """Whether the meta ``name`` (lower case) with ``content`` says noindex, and nofollow."""
    if name not in ROBOTS_META_NAMES:
        return False, False
    words = content.lower().replace(",", " ").split()
    none = "none" in words
    return none or "noindex" in words, none or "nofollow" in words


def refresh_of(content: str) -> tuple[int, str] | None:
    """Seconds and href of a meta refresh; None if it leads nowhere. A browser ignores fractions."""
    found = _REFRESH.match(content)
    if found is None:
        return None
    href = (found[2] or found[3] or found[4] or "").strip("\t\n\f\r ")
    seconds = int(found[1].partition(".")[0][:9] or 0)
    return (seconds, href) if href else None
