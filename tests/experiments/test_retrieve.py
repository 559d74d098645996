"""Retrieval of colour photographs: a folder of made ones in, the report out."""

import numpy as np
import pytest
from PIL import Image

from configs import retrieve as retrieve_config
from experiments import retrieve
from jaxface.runtime import launch

CLASSES = {"leaf": (40, 160, 60), "sand": (210, 180, 120), "sea": (30, 90, 170)}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Three classes of one colour each, with stripes of any width and much noise."""
    root, rng = tmp_path_factory.mktemp("photographs"), np.random.default_rng(0)
    for name, colour in CLASSES.items():
        (root / name).mkdir()
        for number in range(13):
            stripes = 30 * np.sin(np.arange(32) / rng.uniform(1, 6))[None, :, None]
            pixels = np.array(colour) + stripes + rng.normal(0, 25, (32, 32, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(root / name / f"{number:02}.png")
    return root


def config_of(root, **fields):
    config = retrieve_config.get_config("smoke").unlock()
    config.data.root = None if root is None else str(root)
    config.update(fields)
    return config.lock()


def test_colours_are_found_and_the_report_shows_who_finds_them(photographs, tmp_path):
    results = launch.execute(retrieve.run, config_of(photographs), tmp_path / "run")
    found = {name: value for name, value in results.items() if name.startswith("correct in the top 6")}
    assert len(found) == 4  # three methods and the features themselves
    assert all(4 < value <= 6 for value in found.values())  # by chance 2
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Kernel NP-PER minus kernel RCA" in page
    assert "The others do not depend on a width" in page


def test_database_and_queries_share_no_photograph(photographs, monkeypatch, tmp_path):
    seen = []
    plain = retrieve.draws.problem_of
    monkeypatch.setattr(retrieve.draws, "problem_of", lambda *given: seen.append(given) or plain(*given))
    launch.execute(retrieve.run, config_of(photographs, methods=("np_per",)), tmp_path / "run")
    assert len(seen) == 2
    for _, ids, database, queries in seen:
        assert not set(database) & set(queries)
        for rows in (database, queries):
            assert np.bincount(ids[rows]).tolist() == [6, 6, 6]
    assert not np.array_equal(seen[0][2], seen[1][2])


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
        retrieve.run(config_of(photographs, **fields), None)


def test_a_missing_folder_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match=r"config\.data\.root is missing"):
        retrieve.run(config_of(None), None)
