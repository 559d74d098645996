import inspect
import json

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import pytest

from jaxface.faces import STEPS, block_dct, geometry, hog, pipeline
from tests.tolerances import assert_close

STUDY = [
    ("to_gray", {}),
    ("crop", {"top": 2, "left": 1, "height": 24, "width": 20}),
    ("local_norm", {"window": 7}),
    ("lbp", {"cells": [2, 2], "radii": [1, 2]}),
]


def test_the_vector_is_the_composition_of_the_steps(rng):
    image = rng.random((30, 25, 3))
    built = pipeline.build([*STUDY[:2], ("hog", {"cell": 8, "num_bins": 4, "block": 2})])

    def by_hand(image):
        value = geometry.crop(geometry.to_gray(image), top=2, left=1, height=24, width=20)
        return hog.encode(value, cell=8, num_bins=4, block=2)

    assert_close(jax.jit(pipeline.encode)(built, image), jax.jit(by_hand)(image))


def test_an_image_at_the_end_is_flattened(rng):
    image = rng.random((6, 5, 3))
    assert_close(pipeline.encode(pipeline.build([]), image), image.ravel())
    assert_close(pipeline.encode(pipeline.build([("flip", {})]), image), image[:, ::-1].ravel())


def test_json_round_trip_keeps_the_pipeline_and_completes_it():
    built = pipeline.build(STUDY)
    text = json.dumps([(name, dict(arguments)) for name, arguments in built.steps])
    again = pipeline.build(json.loads(text))
    assert again.steps == built.steps
    assert hash(again.steps) == hash(built.steps)
    assert json.loads(text)[3] == ["lbp", {"radii": [1, 2], "cells": [2, 2], "num_points": 8, "root": False}]


def test_configs_and_numpy_scalars_are_taken():
    config = ml_collections.ConfigDict({"steps": STUDY})
    config.lock()
    assert pipeline.build(config.steps).steps == pipeline.build(STUDY).steps
    built = pipeline.build([("local_norm", {"window": np.int64(5)})])
    assert json.dumps(built.steps) == '[["local_norm", [["window", 5], ["floor", 0.001]]]]'


def test_every_step_takes_an_image_and_static_arguments():
    for name, fn in STEPS.items():
        image, *options = inspect.signature(fn).parameters.values()
        assert image.name == "image", name
        assert all(option.kind is option.KEYWORD_ONLY for option in options), name


@pytest.mark.parametrize(("count", "block_size"), [(0, 3), (1, 3), (7, 1), (7, 3), (7, 8)])
def test_a_batch_equals_single_images_at_any_block_size(rng, count, block_size):
    built = pipeline.build([("resize", {"height": 16, "width": 16, "method": "area"}), ("block_dct", {"grid": [4, 4]})])
    images = rng.random((count, 20, 18))

    @jax.jit
    def by_hand(image):
        return block_dct.encode(geometry.resize(image, height=16, width=16, method="area"), grid=(4, 4))

    expected = np.asarray([by_hand(image) for image in images]).reshape(count, 64)
    assert_close(pipeline.encode_batch(built, images, block_size=block_size), expected)


def test_equal_pipelines_share_one_program(rng):
    images = rng.random((5, 20, 20))
    before = pipeline._encode_batch._cache_size()
    for _ in range(3):
        pipeline.encode_batch(pipeline.build([("block_dct", {"grid": (2, 2)})]), images, block_size=2)
        pipeline.encode_batch(pipeline.build([("block_dct", {"block": 8, "grid": [2, 2]})]), images, block_size=2)
    assert pipeline._encode_batch._cache_size() == before + 1


def test_a_pipeline_has_no_leaves():
    assert jax.tree.leaves(pipeline.build(STUDY)) == []


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([("lpb", {})], "name of step 0 must be one of .*Did you mean 'lbp'"),
        (
            [("flip", {}), ("lbp", {"cell": [2, 2]})],
            "argument of step 1 .'lbp'. must be one of .*Did you mean 'cells'",
        ),
        (
            [("crop", {"top": 0, "left": 1})],
            r"step 0 \('crop'\) must be given height, width; got \['left', 'top'\]",
        ),
        ([("flip", {"axis": 0})], r"step 0 \('flip'\) takes no arguments; got \['axis'\]"),
        (["flip"], "step 0 must be .name, {argument: value}.; got 'flip'"),
        ([("flip",)], "step 0 must be .name"),
        (
            [("local_norm", {"floor": float("nan")})],
            r"step 0 \('local_norm'\), floor must be a finite number",
        ),
        ([("lbp", {"cells": np.ones(2)})], r"step 0 \('lbp'\), cells must be a finite number"),
    ],
)
def test_bad_steps_are_refused(steps, message):
    with pytest.raises(ValueError, match=message):
        pipeline.build(steps)


def test_a_failing_step_is_named():
    built = pipeline.build([("to_gray", {}), ("crop", {"top": 0, "left": 0, "height": 9, "width": 9})])
    with pytest.raises(ValueError, match=r"step 1 \('crop'\) of the pipeline: crop must lie inside the image of 4 x 4"):
        pipeline.encode(built, jnp.ones((4, 4)))


def test_bad_batches_are_refused(rng):
    built = pipeline.build([])
    with pytest.raises(ValueError, match=r"images must have shape \[n, h, w\]"):
        pipeline.encode_batch(built, rng.random((4, 4)), block_size=2)
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        pipeline.encode_batch(built, rng.random((1, 4, 4)), block_size=0)
    with pytest.raises(ValueError, match="got dtype uint8"):
        pipeline.encode_batch(built, np.zeros((2, 4, 4), np.uint8), block_size=2)
