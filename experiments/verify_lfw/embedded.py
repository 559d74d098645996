"""The protocol on embeddings of another tool instead of encoded images."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.inputs import Vectors
from experiments.verify_lfw import protocol
from experiments.verify_lfw.protocol import Fold, Scored
from jaxface.core.labels import dense
from jaxface.data import Listing, lfw, overlap
from jaxface.faces import pipeline
from jaxface.verifier import normalize_length

METHODS = (
    "cosine",
    "cosine of centred vectors",
    "LDA and cosine",
    "Joint Bayes, moments",
    "Joint Bayes, full EM",
    "length-normalised: Joint Bayes, full EM",
)
EM = {"full": "full EM", "expanded": "PX-EM"}  # by config.e_step


def methods_of(config: ConfigDict) -> tuple[str, ...]:
    """The methods of a run on images or on embeddings, in the order of their scores."""
    methods = protocol.methods(config) if config.embeddings is None else METHODS
    return tuple(method.replace("full EM", EM[config.e_step]) for method in methods)


def load(config: ConfigDict) -> tuple[Vectors, Listing]:
    """The embeddings that `config.embeddings` names, and the photos of LFW that they show by their `files`.

    The file needs no labels; one vector of two people is refused.
    """
    vectors = inputs.load_vectors(section(config), pipeline.build(()))
    if not vectors.files:
        raise ValueError(
            f"{config.embeddings} does not say which photo a row shows: add an array `files` with names such as "
            "Name/Name_0001.jpg, as experiments.embed does."
        )
    listing = lfw.listing_of(vectors.files, source=config.embeddings)
    overlap.refuse_shared_rows(overlap.Known(vectors.x, listing.ids, listing.names), source=config.embeddings)
    return vectors, listing


def section(config: ConfigDict) -> ConfigDict:
    """The file of embeddings as a section of data; who is shown follows from the names of the photos."""
    options = {**config.options, "min_people": 0}
    return ConfigDict({"loader": "embeddings", "root": config.embeddings, "options": options})


def fold_scores(config: ConfigDict, x: np.ndarray, ids: np.ndarray, fold: Fold) -> Scored:
    """The methods on vectors, which keep all their dimensions."""
    needed, place = np.unique(np.concatenate([fold.pairs.first, fold.pairs.second]), return_inverse=True)
    first, second = place.reshape(2, -1)
    labels = dense(ids[fold.train_rows]).ids
    train, tested = (jnp.asarray(x[rows]) for rows in (fold.train_rows, needed))
    mean = train.mean(axis=0)[None, :]
    known = protocol.Coordinates(train, labels, tested, first, second, dense(ids[needed]).ids)
    scores: list[Any] = [protocol.cosines(each[first], each[second]) for each in (tested, tested - mean)]
    scores.append(protocol.discriminant_cosines(config, known, num_axes=x.shape[1]))
    models = protocol.joint_bayes_models(config, known, variants=False)
    scores += protocol.pair_scores(models, known)
    of_one_length = known._replace(train=normalize_length(train - mean), tested=normalize_length(tested - mean))
    last = protocol.joint_bayes_models(config, of_one_length, variants=False)
    scores.append(protocol.pair_scores(last, of_one_length)[-1])
    return protocol.scored(config, scores, models, known)
