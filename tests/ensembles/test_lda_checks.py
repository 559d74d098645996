"""What a member of LDA refuses, with its message."""

import numpy as np
import pytest

from jaxface.ensembles import lda_member
from tests.ensembles import draws

Y, LABELS, _ = draws.coordinates(np.random.default_rng(0))  # 27 images of 6 people, 26 axes
N = len(Y)
AXES = np.tile(np.arange(5, dtype=np.int32), (2, 1))
UNIT = np.ones((2, N), np.int32)


def fit(**changes):
    settings = {"y": Y, "labels": LABELS, "axes": AXES, "num_classes": 6} | changes
    return lda_member.fit(settings.pop("y"), settings.pop("labels"), settings.pop("axes"), **settings)


def fit_bags(weights, axes=AXES):
    return lda_member.fit_bags(Y, LABELS, axes, weights, num_classes=6)


CASES = {
    "more axes than N - C": (
        lambda: fit(axes=np.arange(22, dtype=np.int32)[None]),
        r"axes must hold at most N - C = 27 - 6 = 21 axes a member, the rank of S_w; got M0 \+ M1 = 22. "
        r"Take fewer, or a ridge above 0",
    ),
    "coordinates that are not principal": (
        lambda: fit(y=Y @ np.linalg.qr(np.random.default_rng(1).normal(size=(26, 26)))[0]),
        r"y must be the principal coordinates of these very samples.*column \d+ is not. Give other coordinates to fit_",
    ),
    "coordinates that are not centred": (lambda: fit(y=Y + 1.0), "y must be the principal coordinates"),
    "one column that is not centred": (
        lambda: fit(y=Y + np.eye(26)[3]),
        "centred and uncorrelated; column 3 is not",
    ),
    "coordinates of more samples": (
        lambda: fit(y=Y[:-6], labels=LABELS[:-6], num_classes=5),
        "y must be the principal coordinates",
    ),
    "NaN coordinates": (lambda: fit(y=Y * np.nan), "y must be finite; 702 of 702 values"),
    "integer coordinates": (lambda: fit(y=Y.astype(int)), "y must be a floating point array; got dtype int64"),
    "labels of another length": (lambda: fit(labels=LABELS[1:]), r"labels must have shape \[n\] with n = 27"),
    "one class": (lambda: fit(num_classes=1), r"num_classes must be at least 2 \(discrimination needs two classes\)"),
    "a class without images": (
        lambda: fit(num_classes=7),
        r"labels must use every id in \[0, 7\); got 6 of them, 6 is missing",
    ),
    "labels that are not dense": (
        lambda: fit(labels=LABELS + 1),
        r"labels must be in \[0, 6\); got values from 1 to 6",
    ),
    "axes that do not exist": (lambda: fit(axes=AXES + 22), r"axes must lie in \[-1, 25\]; got 2 values outside"),
    "one member without its axis": (lambda: fit(axes=AXES[0]), r"axes must have shape \[m, k\]; got shape \(5,\)"),
    "more directions than axes": (
        lambda: fit(axes=AXES[:, :2], num_components=3),
        r"num_components must be at most 2 \(the axes of a member\); got 3",
    ),
    "more directions than classes less one": (
        lambda: fit(axes=np.arange(9, dtype=np.int32)[None], num_components=6),
        r"num_components must be at most 5 \(the rank of the between-class scatter\); got 6",
    ),
    "no directions": (lambda: fit(num_components=0), "num_components must be at least 1; got 0"),
    "a member without axes": (lambda: fit(axes=AXES[:, :0]), "number of axes must be at least 1; got 0"),
    "a ridge a member": (lambda: fit(ridge=np.ones(2)), r"ridge must have shape \[\]; got shape \(2,\)"),
    "a negative ridge": (lambda: fit(ridge=-1.0), r"ridge must lie in \[0, inf\); got -1.0"),
    "no members in flight": (lambda: fit(block_size=0), "block_size must be at least 1; got 0"),
    "a bag of one person": (
        lambda: fit_bags(UNIT * (LABELS == 2)),
        "sample_weights must leave two people in every bag; bag 0 has 1",
    ),
    "a bag too small for its axes": (
        lambda: fit_bags(UNIT * (np.arange(N) % 3 == 0)),
        r"axes must not outnumber the different images of a bag less its people.*bag 0 has 9 images of 6 people for 5 ",
    ),
    "negative weights": (lambda: fit_bags(-UNIT), r"sample_weights must lie in \[0, inf\); got 54 values outside"),
    "weights that leave no degree of freedom": (
        lambda: fit_bags(UNIT * (np.unique(LABELS, return_index=True)[1][LABELS] == np.arange(N))),
        r"bag 0 holds 6 different images of 6 people, which leaves nothing to estimate S_w from. Take larger bags",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_message(what):
    call, message = CASES[what]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_ridge_allows_all_axes():
    members, _ = fit(axes=np.arange(26, dtype=np.int32)[None], ridge=0.1)
    assert np.isfinite(members.basis).all()


def test_float32_coordinates_pass_the_check_of_principal_axes():
    """Rounding correlates axes whose variances differ by many orders; the check must not take that for a mistake."""
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(60, 59)) * np.geomspace(1, 1e-3, 59)).astype(np.float32) + np.float32(3)
    centered = x - x.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    fit(y=centered @ axes[:59].T, labels=np.arange(60, dtype=np.int32) % 6)
