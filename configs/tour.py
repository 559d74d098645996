"""A tour of the five systems on the ORL faces: one command, one report.

    python -m experiments.tour --config=configs/tour.py --workdir=runs/tour          75 seconds on two cores
    python -m experiments.tour --config=configs/tour.py:smoke --workdir=runs/smoke   a quick look

Expected: 6.9 % identification error for Eigenfaces and 3.5 % for Fisherfaces with a ridge, with 5 training images a
person; EER 15.7 % for Joint Bayes with transfer under another camera.
"""

from ml_collections import ConfigDict

from configs import committee, common, hallucinate, super_vector, weak_labels


def get_config(variant: str | None = None) -> ConfigDict:
    """A section for each part of the page; several are those of the studies, at other sizes."""
    config = common.base(x64=True)
    config.runtime.quick_compile = True
    config.data = common.orl_faces(height=56, width=46)
    config.sections = (  # parts of the page, each with its settings below
        *("pixels", "subspaces", "clusters", "same_person", "groups", "committees", "gallery", "super_vectors"),
        "feature_maps",
    )
    config.sections_at_once = 2  # in threads: one compiles while the other computes
    config.pixels = _pixels()
    config.subspaces = _subspaces()
    config.clusters = ConfigDict({"num_restarts": 50, "num_iters": 60, "num_components": 60})
    config.same_person = common.camera_change()
    config.same_person.seed = 0  # of the PCA of many images
    config.same_person.target.loader = "camera"
    config.same_person.num_splits = 5
    config.same_person.target_people = (10,)
    config.groups = _groups()
    config.committees = _committees()
    config.feature_maps = _feature_maps()
    config.gallery = _gallery()
    config.super_vectors = super_vector.vectors()
    config.super_vectors.seed = 0
    config.super_vectors.descriptors.stride = 4
    config.super_vectors.num_train = (2,)
    config.super_vectors.num_splits = 2
    config.super_vectors.num_axes = 48
    return common.variant(config, variant, {"smoke": _smoke})


def _pixels() -> ConfigDict:
    config = ConfigDict()
    config.num_splits = 20
    config.num_train = 5  # images a person in the gallery; the rest are probes
    config.pipelines = {  # image steps by name, see jaxface.faces.STEPS
        "raw pixels": (("resize", {"height": 56, "width": 46, "method": "area"}),),
        "local normalisation 5 x 5": (("local_norm", {"window": 5}),),
        "LBP, radii 1 and 2": (("lbp", {"radii": (1, 2), "cells": (7, 6)}),),
        "HOG, cells of 8": (("hog", {"cell": 8, "num_bins": 9, "block": 2}),),
        "block DCT, 16 x 16 x 4": (("block_dct", {}),),
    }
    return config


def _subspaces() -> ConfigDict:
    config = ConfigDict()
    config.num_splits = 20
    config.num_train = 5  # one of them chooses settings, then all are used
    config.components = (5, 10, 20, 40, 60, 80, 100, 120)
    config.pca_widths = (45, 60, 80, 100, 120)  # PCA dimensions before LDA
    config.ridges = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # relative to the mean eigenvalue
    config.max_images = 10  # of a person, in the pairs of the verification
    config.num_resamples = 1000  # of people, for intervals
    return config


def _groups() -> ConfigDict:
    config = weak_labels.groups()
    config.group_sizes = (2, 3, 6)
    config.num_draws = 20
    config.methods = ("eigenfaces", "fisherfaces", "rca", "ridge_rca", "np_per", "kernel_np_per")
    config.num_folds = 3
    config.widths = (0.1, 0.3, 0.5, 0.9)
    config.ridges = (0.01, 0.1, 1.0)
    config.bandwidths = (0.7, 1.0, 1.4)
    config.seed = 0  # of the groupings
    return config


def _committees() -> ConfigDict:
    config = committee.members()
    config.seed = 0
    config.num_train = (3,)
    config.num_splits = 5
    config.pca_widths = (0.35, 0.5, 0.65, 1.0)
    config.ridges = (0.1, 1.0)
    config.num_members = 50
    config.committees = ("random subspaces, drawn from all axes", "bags of people", "bags of images")
    return config


def _feature_maps() -> ConfigDict:
    config = ConfigDict()
    config.seed = 0
    config.size = (22, 18)  # pixels
    config.estimates = ConfigDict()
    config.estimates.num_images = 100
    config.estimates.num_draws = 3
    config.estimates.sizes = (64, 256, 512, 1024, 2048)
    config.inverse = ConfigDict()
    config.inverse.num_images = 5
    config.inverse.expansions = (5,)
    config.inverse.ratios = (0.2, 0.3, 0.38, 0.5, 0.6, 0.75, 1.0, 1.25, 1.5)
    config.inverse.shown = (0.38, 0.5, 0.75, 1.0, 1.5)
    return config


def _gallery() -> ConfigDict:
    config = ConfigDict()
    config.seed = 0
    config.visible = (14, 30, 0, 46)  # top, bottom, left and right of the visible band, with the eyes
    config.max_images = 10  # of a person
    config.num_folds = 4  # of people, one of which is tested
    config.num_tests = 1
    config.tuning_part = 0.2
    config.methods = ("pca", "dw_ksvd", "fastfood_5x", "ridge")
    config.settings = hallucinate.settings(num_atoms=100, sparsity=6, num_iters=4)
    return config


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (28, 23)
    super_vector.small(config.super_vectors)
    config.pixels.num_splits = 2
    config.pixels.pipelines = {
        "raw pixels": (("resize", {"height": 28, "width": 23, "method": "area"}),),
        "LBP, radius 1": (("lbp", {"radii": (1,), "cells": (4, 3)}),),
    }
    config.subspaces.num_splits = 2
    config.subspaces.components = (10, 40)
    config.subspaces.pca_widths = (60,)
    config.subspaces.ridges = (0.1,)
    config.subspaces.num_resamples = 50
    config.clusters.num_restarts = 4
    config.clusters.num_iters = 10
    config.same_person.num_splits = 2
    config.same_person.num_iters = 5
    config.same_person.image_steps = ()
    config.groups.group_sizes = (2,)
    config.groups.num_draws = 2
    config.groups.methods = ("ridge_rca", "np_per")
    config.groups.ridges = (0.1,)
    config.groups.num_folds = 2
    config.committees.num_splits = 2
    config.committees.num_members = 4
    config.committees.ridges = (0.1,)
    config.gallery.visible = (7, 15, 0, 23)
    config.gallery.methods = ("fastfood_5x", "ridge")
    config.gallery.settings = hallucinate.settings(num_atoms=30, sparsity=3, num_iters=1)
    config.gallery.settings.ridge.ridge = (0.03, 0.1)
    config.feature_maps.size = (8, 8)
    config.feature_maps.estimates.num_images = 20
    config.feature_maps.estimates.num_draws = 2
    config.feature_maps.estimates.sizes = (32, 128)
    config.feature_maps.inverse.num_images = 2
    config.feature_maps.inverse.expansions = (2,)
    config.feature_maps.inverse.ratios = (0.3, 1.0)
    config.feature_maps.inverse.shown = (1.0,)
