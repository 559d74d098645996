"""Committees of recognisers on random subspaces and bags (Kim: Committee Machine, Ensemble Learning, Random Sampling
LDA for Face Recognition).

With few images and many pixels one LDA overfits; T of them on random axes or bags, fused, do not. Draws are arrays of
integers, a committee is a pytree with a leading axis of members, posteriors are `log P_t(c | x)` `[m, n, c]`.

    sampling     who sees what: M0 fixed and M1 random axes, bags of people, bags of images, subsets of parameters
    members      fit_members: any fit over draws, in blocks, on many devices
    lda_member   LdaMember; fit, fit_bags, enroll, its posteriors
    lda_directions  its directions: where S_t is diagonal, from scaled class means alone; for bags, from samples
    lda_checks   checks of its arguments
    posteriors   P_t(c | x) of any member, uniform priors; all members, or fused without keeping them
    fusion       sum, product, min, max, vote, median, weighted; fit_weights
    committee    diagnose: E_av, E_com and correlations; growth: the same and accuracy for T = 1..m; assess: both, some
                 images at a time
    oob          out_of_bag: a committee on bags judged by its own training images
    pair_scores  verification: committee scores of pairs and matrices

Where this code differs from the slides: E_com <= E_av always holds for squared error, and need not hold for the rate of
errors; min and max are normalised; M0 + M1 is at most N - C without a ridge.
"""

from jaxface.ensembles import fusion, lda_member, pair_scores, sampling
from jaxface.ensembles.committee import assess, diagnose, growth
from jaxface.ensembles.members import choose, fit_members
from jaxface.ensembles.oob import out_of_bag
from jaxface.ensembles.pair_scores import score_matrix, score_pairs
from jaxface.ensembles.posteriors import fused, log_posteriors

# Fusion rules by the names that reports use.
RULES = {
    "sum": fusion.sum,
    "product": fusion.product,
    "min": fusion.min,
    "max": fusion.max,
    "vote": fusion.vote,
    "median": fusion.median,
}
# What `config.posterior` may name.
POSTERIORS = {"gaussian": lda_member.gaussian, "cosine": lda_member.cosine}
# What `config.pair_score` may name.
PAIR_SCORES = {
    "cosine": pair_scores.cosine,
    "distance": pair_scores.distance,
    "same_class": pair_scores.same_class,
}

__all__ = [
    "PAIR_SCORES",
    "POSTERIORS",
    "RULES",
    "assess",
    "choose",
    "diagnose",
    "fit_members",
    "fused",
    "fusion",
    "growth",
    "lda_member",
    "log_posteriors",
    "out_of_bag",
    "pair_scores",
    "sampling",
    "score_matrix",
    "score_pairs",
]
