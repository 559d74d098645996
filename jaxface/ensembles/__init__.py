"""Committees of recognisers on random subspaces and bags (Kim: Committee Machine, Ensemble Learning, Random Sampling
LDA for Face Recognition).

With few images and many pixels one LDA overfits; T of them on random axes or bags, fused, do not. A draw is an array
of integers, a member is one row of a pytree, a posterior is `log P_t(c | x)` `[m, n, c]`.

    sampling     who sees what: M0 fixed and M1 random axes, bags of people, bags of images, subsets of parameters
    members      fit_members: any fit over draws, in blocks, on many devices
    directions   LDA on axes where S_t is diagonal, from scaled class means alone; and from samples, for bags
    lda_member   LdaMember; fit, fit_bags, enroll, its posteriors
    posteriors   P_t(c | x) of any member, uniform priors; all members, or fused without keeping them
    fusion       sum, product, min, max, vote, median, weighted; fit_weights
    committee    diagnose: E_av, E_com and correlations; growth: the same and accuracy for T = 1..m
    pair_scores  verification: committee scores of pairs and matrices

Where the printed text differs from this code, the text is wrong or silent: E_com <= E_av holds always, not in general,
but for squared error only; min and max need a normalisation; M0 + M1 is at most N - C without a ridge.
"""

from jaxface.ensembles import fusion, lda_member, pair_scores, sampling
from jaxface.ensembles.committee import diagnose, growth
from jaxface.ensembles.lda_member import LdaMember
from jaxface.ensembles.members import choose, fit_members
from jaxface.ensembles.pair_scores import score_matrix, score_pairs
from jaxface.ensembles.posteriors import fused, log_posteriors

RULES = {
    "sum": fusion.sum,
    "product": fusion.product,
    "min": fusion.min,
    "max": fusion.max,
    "vote": fusion.vote,
    "median": fusion.median,
}
POSTERIORS = {"gaussian": lda_member.gaussian, "cosine": lda_member.cosine}
PAIR_SCORES = {
    "cosine": pair_scores.cosine,
    "distance": pair_scores.distance,
    "same_class": pair_scores.same_class,
}

__all__ = [
    "PAIR_SCORES",
    "POSTERIORS",
    "RULES",
    "LdaMember",
    "choose",
    "diagnose",
    "fit_members",
    "fused",
    "fusion",
    "growth",
    "lda_member",
    "log_posteriors",
    "pair_scores",
    "sampling",
    "score_matrix",
    "score_pairs",
]
