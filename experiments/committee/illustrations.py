"""Two pictures of the paper's, on real faces: what four models say of a continuous quantity, and where they decide.

**A continuous quantity.** Of a photo that lies between two people, y = 0 at the mean face of one and 1 at that of the
other, every member has a posterior: in its coordinates the noise is I, so a face z on the line through both centres is
`N(y; (z - a)'(b - a) / |b - a|^2, 1 / |b - a|^2)`. The committee averages the densities.

**Decision regions.** Both people in the plane of their training images that holds both centres and the direction in
which these images differ most besides.
"""

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.committee.samples import Samples
from jaxface.ensembles import POSTERIORS, fusion, log_posteriors
from jaxface.ensembles.lda_member import LdaMember
from jaxface.reports import figures, region_figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture

SHOWN = 4  # members
_POINTS = 121  # of a line or a side


def measure(config: ConfigDict, members: LdaMember, samples: Samples) -> dict[str, np.ndarray]:
    """The densities and the regions of the two people whose images are nearest to each other."""
    first, second = _nearest_people(samples)
    return _densities(members, samples, first, second) | _regions(config, members, samples, first, second)


def _nearest_people(samples: Samples) -> tuple[int, int]:
    means = np.stack(
        [np.asarray(samples.train)[samples.train_ids == k].mean(axis=0) for k in range(samples.num_people)]
    )
    gaps = ((means[:, None] - means[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(gaps, np.inf)
    first, second = np.unravel_index(gaps.argmin(), gaps.shape)
    return int(first), int(second)


def _densities(members: LdaMember, samples: Samples, first: int, second: int) -> dict[str, np.ndarray]:
    """Posteriors of y for a probe of the second person, `[SHOWN, points]`, and their mean over all members."""
    probe = samples.probes[int(np.flatnonzero(samples.probe_ids == second)[0])]
    z = (probe[members.axes][:, None, :] @ members.basis)[:, 0]
    a, b = members.centers[:, first], members.centers[:, second]
    squared = ((b - a) ** 2).sum(axis=1)
    place = ((z - a) * (b - a)).sum(axis=1) / squared
    y = np.linspace(-1.0, 2.0, _POINTS)
    density = (
        jnp.exp(-squared[:, None] * (y[None] - place[:, None]) ** 2 / 2) * jnp.sqrt(squared / (2 * np.pi))[:, None]
    )
    return {"y": y, "density": np.asarray(density[:SHOWN]), "mean density": np.asarray(density.mean(axis=0))}


def _regions(
    config: ConfigDict, members: LdaMember, samples: Samples, first: int, second: int
) -> dict[str, np.ndarray]:
    """`log P(first) - log P(second)` over the plane, of `SHOWN` members and of the sum of all `[SHOWN + 1, h, w]`."""
    train = np.asarray(samples.train)
    shown = [train[samples.train_ids == person] for person in (first, second)]
    center = (shown[0].mean(axis=0) + shown[1].mean(axis=0)) / 2
    across = shown[1].mean(axis=0) - shown[0].mean(axis=0)
    across /= np.linalg.norm(across)
    rest = np.concatenate(shown) - center
    rest -= (rest @ across)[:, None] * across
    along = np.linalg.svd(rest, full_matrices=False)[2][0]
    plane = np.stack([across, along])
    points = [(images - center) @ plane.T for images in shown]
    reach = 1.6 * np.abs(np.concatenate(points)).max(axis=0)
    x, y = (np.linspace(-each, each, _POINTS) for each in reach)
    grid = center + np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) @ plane
    log_p = log_posteriors(members, grid, posterior=POSTERIORS[config.posterior])
    answers = [*log_p[:SHOWN], fusion.sum(log_p)]
    levels = np.stack([np.asarray(each[:, first] - each[:, second]).reshape(_POINTS, _POINTS) for each in answers])
    return {"region x": x, "region y": y, "levels": levels, "first points": points[0], "second points": points[1]}


def pictures(found: dict[str, np.ndarray], num_train: int) -> list[Picture]:
    """Both pictures for one number of training images."""
    names = [f"member {k + 1}" for k in range(len(found["density"]))]
    lines = [Curve(name, found["y"], density) for name, density in zip(names, found["density"], strict=True)]
    lines.append(Curve("committee", found["y"], found["mean density"]))
    title = f"{num_train} training images a person"
    densities = figures.curves(
        lines, x_label="from one person (0) to another (1)", y_label="density", markers=False, title=title
    )
    regions = region_figures.boundaries(
        dict(zip([*names, "committee"], found["levels"], strict=True)),
        found["region x"],
        found["region y"],
        {"one person": found["first points"], "the other": found["second points"]},
        x_label="from one mean to the other",
        y_label="most other variance",
        title=title,
    )
    return [
        Picture(
            f"densities_{num_train}.svg",
            figures.to_svg(densities),
            "First split: how far a probe of the second person lies on the way from the first, by four members and by "
            "the mean over all.",
        ),
        Picture(
            f"regions_{num_train}.svg",
            figures.to_svg(regions),
            "First split: where four members and the committee decide between these two, in a plane through their "
            "training images.",
        ),
    ]
