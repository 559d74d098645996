"""Which score holds in the tail of identification: the evidence, the ratio, or a norm of it.

Half of the calibration people are the cohort of the adaptive norm; the other half, who are strangers to the gallery,
set the threshold of every rule. The test people, enrolled or not, then say what the threshold does.
"""

import numpy as np
from ml_collections import ConfigDict

from experiments.common import identification_norms
from experiments.verifier.strangers import Probes
from jaxface import metrics
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, percent_interval
from jaxface.verifier import Verifier

NUM_BEST = 200  # of the cohort


def section(config: ConfigDict, model: Verifier, games: list[Probes]) -> tuple[Section, dict[str, float]]:
    """The rates of every rule at every FAR, means over the draws, and the numbers by name."""
    first = games[0]
    known = int(np.count_nonzero(first.mate >= 0))
    people = (len(first.mate) - known, known)
    each = [rates(config, model, game) for game in games]
    rows: list[tuple[Cell, ...]] = []
    results: dict[str, float] = {}
    for far in config.far:
        for rule in each[0]:
            means = np.mean([found[rule][far] for found in each], axis=0).tolist()
            shares = [metrics.wilson(mean * number, number) for mean, number in zip(means, people, strict=True)]
            rows.append((f"{rule}, FAR {100 * far:g} %", *(percent_interval(share, digits=1) for share in shares)))
            for name, mean in zip(("strangers named", "enrolled called unknown"), means, strict=True):
                results[f"{rule}, FAR {far:g}: {name}"] = mean
    text = (
        "Half of the calibration people set the threshold of each rule, the other half are the cohort of the adaptive "
        f"s-norm, of whom the {NUM_BEST} nearest count. {known:,} test people are enrolled with one photo each, "
        f"{people[0]:,} other test people are strangers. A rule holds if the rate of strangers is the FAR; the better "
        "rule then has fewer enrolled people called unknown."
    )
    caption = (
        f"Means of {len(games)} draws of who is enrolled; 95 % intervals of Wilson for the people of one draw. They "
        "leave out that the threshold comes from a sample as well"
    )
    head = ("rule", "strangers given a name %", "enrolled called unknown %")
    return Section("Norms in the tail of identification", (text, Table(head, rows, caption))), results


def rates(config: ConfigDict, model: Verifier, game: Probes) -> dict[str, dict[float, tuple[float, float]]]:
    """Shares of strangers named and of enrolled people called unknown, by rule and FAR."""
    is_cohort = game.held_out_ids % 2 == 0
    cohort, others = game.held_out[is_cohort], game.held_out[~is_cohort]
    settings = {"cohort": cohort, "num_best": NUM_BEST}
    tested = identification_norms.best(model, game.gallery, game.probes, **settings)
    strangers = identification_norms.best(model, game.gallery, others, **settings)
    is_known = game.mate >= 0
    found: dict[str, dict[float, tuple[float, float]]] = {}
    for rule, of_probes in tested.items():
        found[rule] = {}
        for far in config.far:
            least = metrics.stranger_threshold(strangers[rule].score, game.held_out_ids[~is_cohort], far=far).threshold
            is_named = of_probes.score >= least
            found[rule][far] = (float(is_named[~is_known].mean()), float(1 - is_named[is_known].mean()))
    return found
