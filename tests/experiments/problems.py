"""Configs and made people for the studies of verification."""

from configs import score as score_config
from experiments.common.inputs import Vectors
from jaxface import data
from jaxface.data import synthetic


def two_domains(config_file, rng, **fields):
    """A study of made people, and its source and target."""
    config = config_file.get_config("smoke").unlock()
    config.target.loader = "embeddings"
    config.update({"calibration_people": 3, "test_people": 5, "num_splits": 1, "num_components": 5, "num_iters": 2})
    config.update(fields)
    sides = []
    for shift in (0.0, 3.0):
        made = synthetic.gaussian_identities(rng, num_people=12, images_per_person=5, dim=8)
        sides.append(Vectors(x=made.features + shift, ids=made.ids, names=tuple(range(12))))
    return config, *sides


def embeddings(folder, name, rng, people):
    made = synthetic.gaussian_identities(rng, num_people=people, images_per_person=6, dim=12)
    data.embeddings.save(folder / f"{name}.npz", made.features, [f"{name} {k}" for k in made.ids])
    return str(folder / f"{name}.npz")


def scoring(variant, **fields):
    config = score_config.get_config(variant).unlock()
    for name, value in fields.items():
        section, _, field = name.rpartition("__")
        setattr(config[section] if section else config, field, value)
    return config.lock()
