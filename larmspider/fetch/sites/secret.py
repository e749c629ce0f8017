"""A password or token that does not show: not in repr(), str(), f-strings, logs or pickles.

>>> word = Secret("correct horse")
>>> word, f"{word}", word.reveal()
(Secret(***), '***', 'correct horse')
"""

from __future__ import annotations

import hmac
from typing import NoReturn, final


@final
class Secret:
    """Holds a text; only ``reveal()`` gives it away. No str, so that nothing joins or logs it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself: for the option of a request, and nothing else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled or copied")
