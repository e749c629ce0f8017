"""How many mistakes lie between two words."""

from __future__ import annotations


def distance(one: str, other: str, most: int) -> int:
    """Mistakes between two words (optimal string alignment): letters inserted, left out or changed,
    neighbours swapped. A larger number than ``most`` is returned as ``most + 1``."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        oldest, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, oldest[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
