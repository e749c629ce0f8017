"""What an element means to extraction, for both parsers: ``<p>`` parts words, ``<b>`` does not.

``<p>a</p><p>b</p>`` reads "a b" and ``<b>f</b>oo`` reads "foo". Element names are in lower case.
"""

from __future__ import annotations

_BLOCKS = """
    address article aside blockquote body button caption center dd details dialog dir div dl dt
    fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup legend li
    listing main menu nav ol optgroup option p plaintext pre search section select summary table
    tbody td textarea tfoot th thead tr ul video audio object
"""
BLOCKS = frozenset(_BLOCKS.split())
"""Elements that stand apart from the text around them (HTML 15.3, display other than inline);
cells and form controls too, whose words nobody reads as one."""

BREAKS = frozenset(("br", "hr", "img", "input", "embed", "frame"))
"""Void elements that part words. An image between two words parts them; a wbr does not."""

HIDDEN = frozenset(("script", "style", "template", "title", "iframe", "noframes", "noembed"))
"""Elements whose content is not text of the page. ``noscript`` is none of them: it is what a
client without scripts shows, and that is what we are; its text and links are the page's. The
title is told apart; what stands in an svg's title, iframe, noframes or noembed is no browser's
text."""
