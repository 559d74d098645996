"""Arguments of metrics, checked and converted: labelled scores, score matrices with ids, and no NaN anywhere."""

from typing import Any

import numpy as np
import numpy.typing as npt

from jaxface.core import checks

__all__ = []

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]


def numbers(name: str, value: npt.ArrayLike) -> Array:
    """Real numbers of any width in float64."""
    return checks.real(name, value).astype(np.float64)


def identities(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """Ids or labels of one kind: integers, whole numbers, names. NaN and None name nobody."""
    array = np.asarray(value)
    kinds = {_kind(item) for item in array.flat} if array.dtype == object else {array.dtype.name}
    if array.dtype.kind not in "biufSUO" or (array.dtype == object and len(kinds | {"integers", "strings"}) > 2):
        mixture = ", ".join(sorted(kinds))
    elif array.dtype == object and len(kinds) > 1:
        mixture = "both"
    else:
        if array.dtype.kind == "f":
            not_nan(**{name: array})
        return array
    raise ValueError(
        f"{name} must be all integers or all strings; got {mixture}. "
        "Make them dense with jaxface.core.labels.dense, which leaves out rows without a label."
    )


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "strings"
    return "integers" if isinstance(label, int | np.integer) else type(label).__name__


def not_nan(**arguments: Any) -> None:
    """Checks that no array holds NaN; infinities are legal scores."""
    for name, value in arguments.items():
        bad = np.isnan(value)
        if bad.any():
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} must not be NaN; {int(bad.sum())} of {bad.size} values are, the first at index {first}. "
                "NaN has no rank and names nobody: repair it; a failed comparison scores -inf."
            )


def mask(name: str, value: npt.ArrayLike) -> Mask:
    """A boolean array from booleans or from integers that are only 0 and 1; empty lists have no type yet."""
    array = np.asarray(value)
    if array.dtype == np.bool_ or array.size == 0:
        return array.astype(np.bool_)
    if not np.issubdtype(array.dtype, np.integer) or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"{name} must be True/False or 0/1; got dtype {array.dtype}. Compare the identities, e.g. ids_a == ids_b."
        )
    return array.astype(np.bool_)


def labeled(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> tuple[Array, Mask]:
    """Scores `[p]` in float64 and their labels `[p]`, with at least one genuine and one impostor pair."""
    checks.shapes(scores=(scores, "p"), is_same=(is_same, "p"))
    values, same = numbers("scores", scores), mask("is_same", is_same)
    not_nan(scores=values)
    num_genuine = int(np.count_nonzero(same))
    if not 0 < num_genuine < same.size:
        raise ValueError(
            f"is_same must mark at least one genuine and one impostor pair; got {num_genuine} genuine and "
            f"{same.size - num_genuine} impostor pairs. Widen the pair list."
        )
    return values, same


def dense_pair(first: npt.ArrayLike, second: npt.ArrayLike, *, names: tuple[str, str]) -> tuple[Index, Index, int]:
    """Two lists of ids of any kind as dense integers of one meaning, and how many distinct ids there are."""
    first, second = identities(names[0], first), identities(names[1], second)
    if {first.dtype.kind, second.dtype.kind} == {"i", "u"}:  # int64 and uint64 meet in float64, which merges large ids
        first, second = first.astype(object), second.astype(object)
    distinct, index = np.unique(np.concatenate([first, second]), return_inverse=True)
    return index[: first.size], index[first.size :], distinct.size


def score_matrix(
    scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, probe_ids: npt.ArrayLike, *, probes: str = "probe"
) -> tuple[npt.NDArray[Any], Index, Index]:
    """Scores `[g, q]` (dtype kept: ranks need no arithmetic), and gallery and probe ids as integers of one meaning.

    probes: the word for a column in messages.
    """
    name = f"{probes}_ids"
    sizes = checks.shapes(scores=(scores, "g q"), gallery_ids=(gallery_ids, "g"), **{name: (probe_ids, "q")})
    checks.at_least("the number of gallery rows", sizes["g"], 1)
    checks.at_least(f"the number of {probes} columns", sizes["q"], 1)
    values = checks.real("scores", scores)
    not_nan(scores=values)
    gallery, columns, _ = dense_pair(gallery_ids, probe_ids, names=("gallery_ids", name))
    return values, gallery, columns
