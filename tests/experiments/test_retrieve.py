"""Retrieval of colour photographs: a folder of made ones in, the report out."""

import shutil

import numpy as np
import pytest
from PIL import Image

from configs import retrieve as retrieve_config
from experiments.retrieve import answers
from experiments.retrieve import study as retrieve
from experiments.weak_labels import draws
from jaxface.data import LabeledImages, folders
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
    config.data.loader, config.data.root = "folders", None if root is None else str(root)
    config.data.options = {"size": (32, 32), "color": True}
    config.num_classes = None
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


def test_fewer_classes_are_among_the_more(rng):
    ids = np.repeat(np.arange(5, dtype=np.int32), 4)
    x, parts = rng.normal(size=(20, 30)), (np.arange(20)[::2], np.arange(20)[1::2])
    config = config_of(None)
    of_split = []
    for split in (0, 1):
        few, _ = retrieve._problem(config, x, ids, parts, 2, split)
        many, task = retrieve._problem(config, x, ids, parts, 4, split)
        assert set(few) < set(many)
        assert np.bincount(ids[many]).max() == 4
        assert len(np.unique(ids[few])) == 2
        np.testing.assert_array_equal(task.x, x[many])
        assert not set(task.split.train) & set(task.split.test)
        assert np.bincount(np.asarray(task.ids)[task.split.train]).tolist() == [2] * 4
        of_split.append(tuple(np.unique(ids[few])))
    assert of_split[0] != of_split[1]


def test_pictures_of_a_generator_by_the_number_of_classes(tmp_path, monkeypatch):
    """The methods stand in for what they are: the features as they are."""
    monkeypatch.setattr(retrieve.draws, "choose_setting", lambda *rest: {})
    monkeypatch.setattr(retrieve.draws, "embed", lambda task, *rest: draws.Embedded(task.x[None]))
    config = config_of(None, methods=("kernel_rca", "kernel_np_per"), num_classes=(3, 5)).unlock()
    config.data.loader = "made"
    options = {"num_classes": 5, "images_per_class": 13, "size": (32, 32), "variation": 0.5, "off_topic": 0.1}
    config.data.options = options
    results = launch.execute(retrieve.run, config.lock(), tmp_path / "run")
    few, many = (results[f"correct in the top 6, pixels, rooted and balanced, {number} classes"] for number in (3, 5))
    assert few > many > 6 / 5  # harder among more, and better than chance
    page = (tmp_path / "run" / "report.html").read_text()
    assert "made by a generator" in page
    assert "Kernel NP-PER minus kernel RCA, mean over splits" in page
    figures = {path.name for path in (tmp_path / "run" / "figures").iterdir()}
    assert {"classes_rooted_and_balanced.svg", "gain_rooted_and_balanced.svg"} <= figures
    assert {"answers_kernel_np_per.png", "answers_kernel_rca.png", "answers_pixels.png"} <= figures


def test_right_answers_are_framed_in_green_and_wrong_ones_are_pale():
    images = np.zeros((3, 40, 40, 3), np.float32)
    photographs = LabeledImages(images=images, ids=np.array([0, 0, 1]), names=("leaf", "sea"))
    right, wrong, query = (answers._picture(photographs, row, of) for row, of in ((1, 0), (2, 0), (0, None)))
    assert right.shape == (46, 46, 3)
    assert right[0, 0, 1] > right[0, 0, 0]
    assert wrong[0, 0, 1] < wrong[0, 0, 0]
    assert right[20, 20].tolist() == query[20, 20].tolist() == [0, 0, 0]
    assert wrong[20, 20].tolist() == [0.5] * 3
    large = LabeledImages(images=np.zeros((1, 200, 100, 3), np.float32), ids=np.array([0]), names=("leaf",))
    assert answers._picture(large, 0, None).shape == (56, 31, 3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"methods": ("kernel_rac",)}, "config.methods.*kernel_rca"),
        ({"scalings": ("square",)}, "config.scalings"),
        ({"methods": ("joint_bayes",)}, "config.methods"),
        ({"num_classes": (2, 4)}, r"config.num_classes must be at most 3 \(the classes there are\); got 4"),
        ({"per_class": 7}, r"config.per_class must be at most 6 \(the smallest class has 13 photographs\); got 7"),
    ],
)
def test_messages(fields, message, photographs, tmp_path):
    with pytest.raises(ValueError, match=message):
        launch.execute(retrieve.run, config_of(photographs, **fields), tmp_path / "run")


def test_a_missing_folder_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match=r"config\.data\.root is missing"):
        retrieve.run(config_of(None), None)
