"""The class that makes the queries for an index: Tantivy's, or another engine's with the same
methods (search/engine.py)::

    kind_of(schema).term_query(schema, "host", "wiki.example")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tantivy import Query

if TYPE_CHECKING:
    import tantivy


def kind_of(schema: tantivy.Schema) -> type[Query]:
    """The class for an index with this ``schema``; another engine's schema names its own."""
    found: type[Query] = getattr(schema, "queries", Query)
    return found
