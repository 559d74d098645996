"""Retrieval of colour photographs: a folder of made ones in, the report out."""

import shutil

import numpy as np
import pytest
from PIL import Image

from configs import retrieve as retrieve_config
from experiments.retrieve import study as retrieve
from experiments.weak_labels import draws
from jaxface.data import folders
from jaxface.data.splits import Split
from jaxface.runtime import launch
from tests.experiments import again
from tests.tolerances import assert_close

CLASSES = {"leaf": (40, 160, 60), "sand": (210, 180, 120), "sea": (30, 90, 170)}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Three classes of one colour each, with stripes of any width and much noise."""
    root, rng = tmp_path_factory.mktemp("photographs"), np.random.default_rng(0)
    for name, color in CLASSES.items():
        (root / name).mkdir()
        for number in range(13):
            stripes = 30 * np.sin(np.arange(32) / rng.uniform(1, 6))[None, :, None]
            pixels = np.array(color) + stripes + rng.normal(0, 25, (32, 32, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(root / name / f"{number:02}.png")
    return root


def config_of(root, **fields):
    config = retrieve_config.get_config("smoke").unlock()
    config.data.root = None if root is None else str(root)
    config.update(fields)
    return config.lock()


def test_colours_are_found_and_the_report_shows_who_finds_them(photographs, tmp_path):
    own = shutil.copytree(photographs, tmp_path / "photographs")
    config = config_of(own)
    results = launch.execute(retrieve.run, config, tmp_path / "run")
    found = {name: value for name, value in results.items() if name.startswith("correct in the top 6")}
    assert len(found) == 4  # three methods and the features themselves
    assert all(4 < value <= 6 for value in found.values())  # by chance 2
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Kernel NP-PER minus kernel RCA" in page
    assert "The others do not depend on a width" in page
    name = f"{next(iter(CLASSES))}/03.png"
    again.check(retrieve.run, config, tmp_path / "run", results, own / name, name)


def test_database_and_queries_share_no_photograph(photographs, monkeypatch, tmp_path):
    seen = []
    plain = retrieve.draws.problem_of
    monkeypatch.setattr(retrieve.draws, "problem_of", lambda *given: seen.append(given) or plain(*given))
    launch.execute(retrieve.run, config_of(photographs, methods=("np_per",)), tmp_path / "run")
    assert len(seen) == 2
    for _, ids, (database, queries, _) in seen:
        assert not set(database) & set(queries)
        for rows in (database, queries):
            assert np.bincount(ids[rows]).tolist() == [6, 6, 6]
    assert not np.array_equal(seen[0][2].train, seen[1][2].train)


def test_kinds_of_features_are_rooted_and_balanced(photographs):
    config = config_of(photographs)
    images = folders.load(photographs, size=(32, 32), color=True).images
    plain, balanced, rooted = (np.asarray(retrieve.features(config, images, each)) for each in retrieve.SCALINGS)
    colours = 4**3
    for found in (balanced, rooted):
        for kind in (found[:, :colours], found[:, colours:]):
            assert_close(kind.var(axis=0).sum(), 1.0)
    for power, found in ((1, balanced), (2, rooted)):
        share = found[:, :colours] ** power
        assert_close(share / share.sum(axis=1, keepdims=True), plain[:, :colours], factor=10)


def test_a_smaller_width_is_the_leading_axes_of_one_fit(monkeypatch):
    """The first axis pairs the wrong photographs, the second the right ones from farther away."""
    z = np.array([[0.0, 0], [1, 9], [1, 0], [0, 9]])  # two of the database, then two queries
    ids = np.array([0, 1, 0, 1], np.int32)
    task = draws.Problem(z, z, ids, Split(np.array([0, 1]), np.array([2, 3])), 1.0)
    widths = []

    def embed(task, grouping, method, setting):
        widths.append(float(setting["width"]))
        return draws.Embedded(z[None], 0)

    monkeypatch.setattr(retrieve.draws, "embed", embed)
    config = config_of(None, k=1, curve_widths=(0.5, 1.0))
    grouping = draws.Draws(np.zeros((1, 4), int), np.zeros((1, 4), int), 2)
    assert retrieve._by_width(config, task, grouping, {"width": 1.0}).tolist() == [0.0, 1.0]
    assert widths == [2.0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"methods": ("kernel_rac",)}, "config.methods.*kernel_rca"),
        ({"scalings": ("square",)}, "config.scalings"),
        ({"per_class": 7}, r"config.per_class must be at most 6 \(the smallest class has 13 photographs\); got 7"),
    ],
)
def test_messages(fields, message, photographs, tmp_path):
    with pytest.raises(ValueError, match=message):
        launch.execute(retrieve.run, config_of(photographs, **fields), tmp_path / "run")


def test_a_missing_folder_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match=r"config\.data\.root is missing"):
        retrieve.run(config_of(None), None)
