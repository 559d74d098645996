"""Labelled scores for the tests of metrics: few values, so ties are everywhere, and people behind the pairs."""

import hypothesis.strategies as st
import numpy as np

levels = st.sampled_from([-np.inf, -3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 7.0, np.inf])
finite_levels = st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 7.0])


@st.composite
def labeled_scores(draw, values=levels, max_size=24):
    """Scores and labels with at least one pair of either kind."""
    genuine = draw(st.lists(values, min_size=1, max_size=max_size // 2))
    impostor = draw(st.lists(values, min_size=1, max_size=max_size // 2))
    pairs = [(s, True) for s in genuine] + [(s, False) for s in impostor]
    pairs = draw(st.permutations(pairs))
    return np.array([s for s, _ in pairs]), np.array([same for _, same in pairs])


def normal_scores(rng, num_genuine, num_impostor, *, shift=1.5, decimals=None):
    """Gaussian scores of both kinds; rounding to `decimals` makes ties."""
    same = np.arange(num_genuine + num_impostor) < num_genuine
    scores = rng.normal(size=same.size) + shift * same
    scores = scores if decimals is None else np.round(scores, decimals)
    order = rng.permutation(same.size)
    return scores[order], same[order]


def people_pairs(rng, *, num_people, images, dim=8):
    """All pairs of images of simulated people, some of whom vary more than others; score = -distance."""
    ids = np.repeat(np.arange(num_people), images)
    spread = 0.6 * rng.gamma(4.0, 0.25, size=num_people)
    x = rng.normal(size=(num_people, dim))[ids] + spread[ids, None] * rng.normal(size=(ids.size, dim))
    i, j = np.triu_indices(ids.size, 1)
    return -np.linalg.norm(x[i] - x[j], axis=1), ids[i] == ids[j], ids[i], ids[j]


def tied_people(rng, *, num_people=5, images=3, decimals=0):
    """`people_pairs` with rounded scores, so that there are ties."""
    scores, same, a, b = people_pairs(rng, num_people=num_people, images=images, dim=3)
    return np.round(scores, decimals), same, a, b
