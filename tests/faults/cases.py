"""The public doors that faults of numbers come through: the rows of the transformation tables, and more of the host."""

import dataclasses
import functools
import importlib
import inspect
from typing import Any

import jax
import numpy as np

from jaxface.core import labels
from jaxface.data import groups, pairs, splits
from jaxface.features import bandwidth, kitchen_sinks
from jaxface.hallucination import fastfood as fastfood_hallucination
from jaxface.joint_bayes import choose_rank, group_by_count, set_llr_matrix
from jaxface.linalg import gram
from jaxface.metrics import (
    bootstrap,
    calibration,
    clustering,
    identification,
    intervals,
    lfw,
    reconstruction,
    retrieval,
    streaming,
    verification,
)
from jaxface.subspace import kcfa, kernel_np_per, np_per
from tests.joint_bayes import cases as joint_bayes_cases
from tests.subspace import cases as subspace_cases
from tests.transformations import Case

ROOMS = ("linalg", "faces", "subspace", "cluster", "joint_bayes", "losses", "ensembles", "features", "mixtures",
         "sparse", "hallucination")  # fmt: skip

# Steps that a room takes behind its doors: what they receive has been checked.
INNER = (
    "linalg.class_stats",
    "linalg.psd",
    "linalg.spectral",
    "linalg.nullspace",
    "linalg.scatter",
    "linalg.products",
    "linalg.hadamard",
    "linalg.scaling",
    "linalg.discriminant",
    "linalg.distances.safe_sqrt",
    "linalg.distances.safe_inverse_sqrt",
    "faces.separable",
    "faces.pixels",
    "subspace.grouping",
    "subspace.pca.principal_axes",
    "subspace.pca.axes_of_moments",
    "subspace.rca.in_unit",
    "subspace.rca.diagnosis",
    "subspace.held_out.group_error",
    "subspace.kernel_np_per.dual",
    "subspace.kernel_map.centred_map",
    "subspace.kernel_map.from_linear",
    "subspace.kernel_map.status_of",
    "joint_bayes.stats.add_rows",
    "joint_bayes.stats.by_person",
    "joint_bayes.stats.rows_about",
    "joint_bayes.posterior",
    "joint_bayes.objectives.div",
    "joint_bayes.objectives.gaussian",
    "joint_bayes.objectives.eq",
    "joint_bayes.em.m_step",
    "joint_bayes.em.update",
    "joint_bayes.em.fit_grouped",
    "tests.",
    "ensembles.lda_directions",
    "features.maps.sum_of_blocks",
    "features.forms.random_phase",
    "features.maps.zero_padded",
    "linalg.krylov",
    "features.trig",
    "features.spectra",
    "linalg.small_cholesky",
    "mixtures.views",
    "mixtures.stats",
    "mixtures.em.residual",
    "mixtures.em.update",
    "mixtures.em.fit_blocks",
    "mixtures.em.joint",
    "mixtures.em.sequential",
    "mixtures.em.m_step",
    "mixtures.pcca.from_covariance",
    "mixtures.pcca.of_views",
    "mixtures.normalization",
    "mixtures.encoding.whiten",
    "mixtures.encoding.autodiff",
    "mixtures.encoding.closed_form",
    "mixtures.initialization.cluster",
    "mixtures.initialization.shared_axes",
    "mixtures.multiview.matrices",
    "mixtures.patterns",
    "mixtures.pcca.draw",
    "mixtures.pcca.posterior_given",
    "mixtures.repairs",
    "sparse.dictionary",
    "sparse.atom_update",
    "sparse.batch_step",
    "sparse.ksvd.is_too_coherent",
    "sparse.ksvd.replace",
    "sparse.ksvd.substitutes",
    "hallucination.reconstruction.checked",
    "hallucination.linear.report",
    "hallucination.linear.penalized",
    "hallucination.network.network",
    "sparse.omp.encode_gram",
)  # fmt: skip
DOORS = ("mixtures.views.log_density", "mixtures.views.log_responsibilities", "mixtures.views.responsibilities",
         "mixtures.stats.e_step", "mixtures.stats.log_likelihood")  # fmt: skip

# Functions that other functions call on arrays they have checked: they see every value, and no wrong type or shape.
STEPS = (
    "linalg", "features.forms", "ensembles.posteriors.gaussian", "ensembles.posteriors.cosine",
    "ensembles.posteriors.linear", "ensembles.posteriors.class_centers", "ensembles.fusion.sum",
    "ensembles.fusion.product", "ensembles.fusion.min", "ensembles.fusion.max", "ensembles.fusion.median",
    "ensembles.fusion.vote", "ensembles.fusion.normalize", "ensembles.fusion.add", "ensembles.fusion.nothing",
    "ensembles.pair_scores.cosine", "ensembles.pair_scores.distance", "ensembles.pair_scores.same_class",
    "hallucination.fastfood.effective_beta", "ensembles.lda_member.gaussian", "ensembles.lda_member.cosine",
    "sparse.ksvd.code_signals",
)  # fmt: skip
# NaN is left out of a part of the result, as documented, and stands in another part.
TELLS_APART = ("joint_bayes.transfer.choose_weight", "cluster.kmeans.update", "sparse.online.update",
               "mixtures.gmm.init", "mixtures.initialization.init")  # fmt: skip
FREE_BASIS = ("subspace.kernel_np_per", "features.dekernelize")  # far apart, all images are alike to a Gaussian kernel
NAN_BY_DESIGN = ("diagnose", "bootstrapped", "mean_of_subjects", "reliability", "paired_interval", "split_interval")


@dataclasses.dataclass(frozen=True, eq=False)
class Door:
    """A public function with example arguments in float64, and what is known of it."""

    case: Case
    is_host: bool = False  # NumPy in float64, whatever comes
    is_traceable: bool = True

    @property
    def is_step(self) -> bool:
        return self.name.startswith(STEPS)

    @property
    def may_be_nan(self) -> bool:
        """Whether NaN says, as documented, that there is no answer."""
        return self.name.endswith(NAN_BY_DESIGN)

    @property
    def name(self) -> str:
        return self.case.name.removeprefix("tests.faults.")

    @functools.cached_property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.case.fn).parameters)

    def parameter(self, position: int) -> str:
        """The name of an argument; those of `*views` share one."""
        return self.parameters[min(position, self._last)]

    @functools.cached_property
    def _last(self) -> int:
        kinds = [p.kind for p in inspect.signature(self.case.fn).parameters.values()]
        return len([kind for kind in kinds if kind is not inspect.Parameter.KEYWORD_ONLY]) - 1

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """What a message may call an argument: its name, or that of a field of a parameter class."""
        paths = jax.tree_util.tree_leaves_with_path(self.args(0))
        fields = [str(getattr(key, "name", "")) for path, _ in paths for key in path]
        views = ("x", "y", "set") if "views" in self.parameters else ()
        return (*self.parameters, *filter(None, dict.fromkeys(fields)), *views, "number of", "signals of a batch")

    def args(self, seed: int) -> tuple[Any, ...]:
        """Arguments in float64, on the host."""
        with jax.enable_x64(True):
            drawn = self.case.args(np.random.default_rng(seed))
        return jax.tree.map(lambda leaf: leaf if is_key(leaf) else np.asarray(leaf), drawn)

    @functools.cached_property
    def is_random(self) -> bool:
        """Draws depend on the precision, so its results are compared within one precision only."""
        return any(is_key(leaf) for leaf in jax.tree.leaves(self.args(0)))

    def takes_none(self, name: str) -> bool:
        """Whether None has a meaning for a parameter."""
        parameter = inspect.signature(self.case.fn).parameters[name]
        return parameter.default is None or "None" in str(parameter.annotation)


def is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


SAME = np.arange(14) % 3 == 0
PEOPLE = np.repeat(np.arange(6), 2)
COUNTS = np.array([1, 2, 3, 2], np.int32)


def scored(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=14) + SAME, SAME


def matrix(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.normal(size=(12, 6)), PEOPLE, PEOPLE[:6]


def clusters(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return PEOPLE, rng.integers(0, 3, 12)


def pictures(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.random((12, 12)), rng.random((12, 12))


def rates(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.random(6), rng.random(6)


def image_pairs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    first, second = np.triu_indices(12, 1)
    return rng.normal(size=66), PEOPLE[first] == PEOPLE[second], PEOPLE[first], PEOPLE[second]


def curve_numbers(scores: Any, is_same: Any) -> tuple[float, ...]:
    """What follows from the order of scores."""
    curve = verification.roc(scores, is_same)
    costs = {"prior": 0.1, "cost_miss": 1.0, "cost_false_accept": 1.0}
    return (
        verification.auc(curve), verification.eer(curve), verification.eer_rocch(curve),
        verification.verification_rate(curve, 0.2), verification.min_dcf(curve, **costs), calibration.min_cllr(curve),
    )  # fmt: skip


def bootstrapped(scores: Any, is_same: Any, subject_a: Any, subject_b: Any) -> Any:
    rng = np.random.default_rng(0)
    return bootstrap.subject_bootstrap(scores, is_same, subject_a, subject_b, rng=rng, num_resamples=40, far=(0.1,),
                                       band_far=(0.2,))  # fmt: skip


def mean_of_subjects(values: Any, subjects: Any) -> Any:
    return bootstrap.mean_interval(values, subjects, rng=np.random.default_rng(0), num_resamples=40)


def disjoint(ids: Any, *, num_people: Any, num_splits: int) -> np.ndarray:
    return splits.identity_disjoint(ids, num_people=num_people, rng=np.random.default_rng(0), num_splits=num_splits)


def k_shot(ids: Any, *, num_train: int, num_splits: int) -> np.ndarray:
    return splits.k_shot(ids, num_train=num_train, rng=np.random.default_rng(0), num_splits=num_splits)


def some_groups(labels: Any, *, group_size: int, num_draws: int) -> np.ndarray:
    return groups.random_groups(labels, group_size=group_size, rng=np.random.default_rng(0), num_draws=num_draws)


def sets(rng: np.random.Generator) -> tuple[Any, ...]:
    return joint_bayes_cases.basis(rng), rng.normal(size=(4, 3)), COUNTS, rng.normal(size=(4, 3)), COUNTS


def learned(rng: np.random.Generator) -> tuple[Any, ...]:
    mask = np.array([True, False, True, True, False, False])
    return jax.random.key(int(rng.integers(99))), rng.normal(size=(9, 6)), mask


HOST = [
    Case(curve_numbers, scored),
    Case(verification.roc, scored),
    Case(calibration.cllr, scored),
    Case(calibration.pav_llr, scored),
    Case(calibration.reliability, scored, {"num_bins": 3}),
    Case(clustering.purity, clusters),
    Case(clustering.cluster_accuracy, clusters),
    Case(identification.cmc, matrix, {"max_rank": 2}),
    Case(identification.nearest_neighbor_hits, matrix),
    Case(identification.open_set, lambda r: (r.normal(size=(12, 6)), PEOPLE, PEOPLE[:6] * 2), {"rank": 1}),
    Case(retrieval.retrieval_at_k, matrix, {"k": 3}),
    Case(retrieval.average_precision, matrix),
    Case(reconstruction.psnr, pictures, {"peak": 1.0}),
    Case(reconstruction.ssim, pictures, {"peak": 1.0}),
    Case(reconstruction.cosine_distance, lambda r: (r.normal(size=5), r.normal(size=5))),
    Case(lfw.lfw_accuracy, lambda r: (r.normal(size=20), np.arange(20) % 2 == 0, np.arange(20) // 2 % 5)),
    Case(lfw.best_threshold, scored),
    Case(streaming.count, lambda r: (*scored(r), np.linspace(-3, 3, 5))),
    Case(bootstrapped, image_pairs),
    Case(mean_of_subjects, lambda r: (r.random(12), PEOPLE)),
    Case(intervals.paired_interval, rates, {"test_to_train": 0.25, "within": intervals.RATE}),
    Case(intervals.split_interval, lambda r: (r.random(6),), {"test_to_train": 0.25, "within": intervals.RATE}),
    Case(disjoint, lambda r: (PEOPLE,), {"num_people": (2, 1), "num_splits": 2}),
    Case(k_shot, lambda r: (PEOPLE,), {"num_train": 1, "num_splits": 2}),
    Case(pairs.all_pairs, lambda r: (PEOPLE,)),
    Case(labels.dense, lambda r: (PEOPLE,)),
    Case(some_groups, lambda r: (PEOPLE,), {"group_size": 2, "num_draws": 2}),
    Case(groups.track_groups, lambda r: (r.normal(size=(12, 2)), PEOPLE), {"threshold": 1.5, "min_size": 2}),
]

ON_THE_HOST = [  # functions of arrays that look at values, and so have no row in the tables
    Case(set_llr_matrix, sets),
    Case(choose_rank, lambda r: (joint_bayes_cases.a_model(r),), {"tolerance": 0.5}),
    Case(group_by_count, lambda r: (joint_bayes_cases.sums(r),)),
    Case(np_per.fit_dependent, lambda r: (subspace_cases.images(r), subspace_cases.GROUPS), {"num_groups": 5}),
    Case(kernel_np_per.fit_dependent,
         lambda r: (gram.Gaussian(bandwidth=np.float64(4)), subspace_cases.images(r), subspace_cases.GROUPS),
         {"num_groups": 5, "rkhs_orthonormal": True}),
    Case(kcfa.median_distance, lambda r: (subspace_cases.images(r),)),
    Case(bandwidth.choose_bandwidth, lambda r: (jax.random.key(1), r.normal(size=(6, 3))),
         {"init": kitchen_sinks.init, "num_features": 8, "quantile": 0.9}),
    Case(fastfood_hallucination.fit_fastfood_dw_ksvd, learned,
         {"beta": 3.0, "expansion": 1, "quantile": 0.9, "num_atoms": 8, "sparsity": 2, "num_iters": 1}),
]  # fmt: skip


def is_door(name: str) -> bool:
    """Whether users call the function of a row of the tables."""
    return name.partition("[")[0] in DOORS or not name.startswith(INNER)


@functools.cache
def doors() -> dict[str, Door]:
    """Every door by its name."""
    tables = [importlib.import_module(f"tests.{room}.cases").CASES for room in ROOMS]
    rows = [case for table in tables for case in table if is_door(case.name)]
    found = [Door(case) for case in rows]
    found += [Door(case, is_traceable=False) for case in ON_THE_HOST]
    found += [Door(case, is_host=True, is_traceable=False) for case in HOST]
    return {door.name: door for door in found}
