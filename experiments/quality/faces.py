"""SFace vectors of degraded photos, and what the detector says of each face."""

import numpy as np
from ml_collections import ConfigDict

from experiments.embed import faces
from experiments.embed.photos import Photos
from experiments.quality import degrade
from jaxface.data import Listing, folders, images, pairs, people_with, take_people


def listed(config: ConfigDict) -> Listing:
    """The photos that take part: `num_people` random people with enough of them, so many of each."""
    listing = folders.scan(config.data.root)
    people = people_with(listing.ids, min_rows=config.people.min_images)
    if config.num_people is not None and config.num_people < people.size:
        people = np.sort(np.random.default_rng((config.seed, 3)).choice(people, config.num_people, replace=False))
    return take_people(listing, people)


def described(config: ConfigDict, listing: Listing) -> dict[str, np.ndarray]:
    """Vectors, people, amounts and the detector's score of the photos in which a face is found, and their pixels.

    The face is looked for in the degraded photo, as a user would have it.
    """
    rows = pairs.limited(listing.ids, max_rows=config.people.max_images)
    amounts = degrade.drawn(config, len(rows), np.random.default_rng((config.seed, 1)))
    paths = listing.paths()

    def read(k: int) -> np.ndarray:
        photo = images.read_image(paths[rows[k]], color=True)
        of_photo = degrade.Amounts(*(each[k : k + 1] for each in amounts))
        return degrade.degraded(config, photo[None], of_photo, np.random.default_rng((config.seed, 2, k)))[0]

    photos = Photos(files=tuple(listing.files[row] for row in rows), labels=(), read=read)
    networks = faces.load_networks(config.detector.min_score)
    found = faces.embedded(networks, photos, range(len(rows)), config.detector, num_shown=len(rows))
    which = found["photo"]
    return {
        "x": found["features"],
        "ids": listing.ids[rows][which],
        "kind": amounts.kind[which],
        "level": amounts.level[which],
        "images": found["aligned"].mean(axis=-1).astype(np.float32) / 255,
        "detector": found["scores"].astype(np.float64),
        "missed": np.array(len(rows) - len(which)),
    }
