"""Refuses people on two sides of a test: a system recognises the people it was trained on too easily.

    Known                 rows and whom they show
    refuse_shared_people  two sets that must show different people, compared by name and by identical rows
    refuse_shared_rows    one set in which the same row has two names
    identical_rows        which rows of one array are in another too

Names are compared as text. Rows are compared bit by bit in float32: the same photo or vector, not a similar one.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxface.data.datasets import Name

__all__ = ["Known", "identical_rows", "refuse_shared_people", "refuse_shared_rows"]

_LISTED = 5  # people that a message names


class Known(NamedTuple):
    """Rows of known people."""

    rows: np.ndarray  # [n, ...]
    ids: np.ndarray  # integers [n]
    names: Sequence[Name]  # names[ids[i]] is who row i shows


def refuse_shared_people(**sides: Known) -> None:
    """Raises ValueError with the names of everybody who is in two of the sides; sides are called by their keyword."""
    named = list(sides.items())
    for k, (left_name, left) in enumerate(named):
        for right_name, right in named[k + 1 :]:
            _refuse_pair(left_name, left, right_name, right)


def refuse_shared_rows(known: Known, *, source: str) -> None:
    """Raises ValueError when one row has two names: a split by people would put it on both sides."""
    first_id: dict[bytes, int] = {}
    shared: dict[tuple[str, str], None] = {}
    for digest, person in zip(_digests(known.rows), known.ids, strict=True):
        if person < 0:  # nobody knows whom the row shows
            continue
        other = first_id.setdefault(digest, int(person))
        if other != person:
            shared[str(known.names[other]), str(known.names[int(person)])] = None
    if shared:
        pairs = [f"{a!r} and {b!r}" for a, b in shared]
        raise ValueError(
            f"{source} holds the same image or vector under two names: {_some(pairs)}. "
            "Remove it from the wrong person, or merge the two if they are one."
        )


def identical_rows(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Which of the rows `queries` `[q, ...]` are among `rows` `[n, ...]`: bool `[q]`."""
    known = set(_digests(rows))
    return np.array([digest in known for digest in _digests(queries)], bool)


def _refuse_pair(left_name: str, left: Known, right_name: str, right: Known) -> None:
    both = sorted(_people(left) & _people(right))
    if both:
        raise ValueError(
            f"{left_name} and {right_name} must show different people; {_some([repr(name) for name in both])} "
            f"{'is' if len(both) == 1 else 'are'} in both. Remove them from one side; if equal names mean different "
            "people, give them different names."
        )
    owner = {digest: str(left.names[int(person)]) for digest, person in zip(_digests(left.rows), left.ids, strict=True)}
    shared = {
        f"{owner[digest]!r} in {left_name} and {str(right.names[int(person)])!r} in {right_name}": None
        for digest, person in zip(_digests(right.rows), right.ids, strict=True)
        if digest in owner
    }
    if shared:
        raise ValueError(
            f"{left_name} and {right_name} must show different people; these have an identical image or vector: "
            f"{_some(list(shared))}. Remove them from one side."
        )


def _people(known: Known) -> set[str]:
    return {str(known.names[int(person)]) for person in np.unique(known.ids)}


def _digests(rows: np.ndarray) -> list[bytes]:
    """A digest for each row; adding zero makes -0 the same as 0."""
    return [hashlib.blake2b((np.asarray(row, np.float32) + 0).tobytes(), digest_size=16).digest() for row in rows]


def _some(items: list[str]) -> str:
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more
