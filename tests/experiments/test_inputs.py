"""Vectors of every format come into a study by the same fields."""

import numpy as np
import pytest

from configs import verifier
from experiments.common import inputs


def section(root, **options):
    config = verifier.get_config("embeddings").data.unlock()
    config.root = str(root)
    config.options.update(options)
    return config


def test_options_reach_the_reader_and_labels_are_part_of_the_data(tmp_path, rng):
    x = rng.normal(size=(4, 3))
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "who.csv").write_text("file,person\na,ann\nb,bob\nc,ann\nd,bob\n")
    config = section(tmp_path / "x.npy", labels="who.csv:person")
    found = inputs.load_vectors(config, ())
    np.testing.assert_allclose(found.x, x, rtol=1e-6)
    assert (found.ids.tolist(), found.names, found.files) == ([0, 1, 0, 1], ("ann", "bob"), ("a", "b", "c", "d"))
    assert inputs.path_of(config) == (tmp_path / "x.npy", tmp_path / "who.csv")


def test_a_table_with_chosen_columns(tmp_path):
    (tmp_path / "x.csv").write_text("age;v1;v2;name\n30;0.5;1;ann\n40;2;3;bob\n")
    found = inputs.load_vectors(section(tmp_path / "x.csv", features="v1:v2", labels="name"), ())
    assert found.x.tolist() == [[0.5, 1], [2, 3]]
    assert inputs.path_of(section(tmp_path / "x.csv")) == (tmp_path / "x.csv",)


def test_options_of_vectors_mean_nothing_for_images(tmp_path):
    config = section(tmp_path, labels="who.txt")
    config.loader = "folders"
    with pytest.raises(ValueError, match=r"'labels' is not an argument of data\.folders\.load"):
        inputs.load_faces(config)
