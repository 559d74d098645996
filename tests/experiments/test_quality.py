"""The parts of the quality study: damage of a known amount, what is measured of it, and folds of people."""

import numpy as np
import pytest

from configs import quality as quality_config
from experiments.quality import degrade, faces, measured, methods, report, study
from experiments.quality.degrade import KINDS, Amounts


@pytest.fixture(scope="module")
def config():
    return quality_config.get_config("smoke")


@pytest.fixture(scope="module")
def photo():
    """Grey, with details of all sizes."""
    rng = np.random.default_rng(0)
    rows, columns = np.fft.fftfreq(112)[:, None], np.fft.fftfreq(96)[None, :]
    spectrum = np.fft.fft2(rng.normal(size=(112, 96))) / (0.01 + np.hypot(rows, columns))
    details = np.fft.ifft2(spectrum).real
    return (0.5 + 0.12 * details / details.std()).clip(0, 1).astype(np.float32)[None]


def damaged(config, photo, kind, level, noise=0.0):
    config = config.copy_and_resolve_references().unlock()
    config.degrade.num_levels, config.degrade.noise = 4, noise
    amounts = Amounts(np.array([kind]), np.array([level]))
    return degrade.degraded(config, photo, amounts, np.random.default_rng(0))


def test_a_photo_that_is_not_damaged_stays_but_for_noise(config, photo):
    np.testing.assert_allclose(damaged(config, photo, 0, 0), photo, atol=0.5 / 255 + 1e-6)
    noisy = damaged(config, photo, 0, 0, noise=3.0) - photo
    assert 2.5 < 255 * noisy.std() < 3.5


@pytest.mark.parametrize("kind", range(1, len(KINDS)))
def test_more_damage_leaves_less_to_measure(kind, config, photo):
    of_levels = np.concatenate([damaged(config, photo, kind, level) for level in range(1, 5)])
    sharpness, contrast = measured.qualities(np.concatenate([damaged(config, photo, 0, 0), of_levels]))
    assert (np.diff(sharpness) < 0).all()
    assert (np.diff(contrast) < 0).all()
    means = of_levels.mean(axis=(1, 2))
    if KINDS[kind] == "dark":
        np.testing.assert_allclose(means, photo.mean() * config.degrade.dark ** (np.arange(1, 5) / 4), rtol=0.05)
    else:  # blur and shrinking keep the light
        np.testing.assert_allclose(means, photo.mean(), rtol=0.02)


def test_colors_are_damaged_alike_and_measured_as_grey(config, photo):
    color = np.repeat(photo[..., None], 3, axis=-1)
    for kind in range(1, len(KINDS)):
        found, gray = (damaged(config, each, kind, 4) for each in (color, photo))
        np.testing.assert_allclose(found[..., 1], gray, atol=1.01 / 255)
        np.testing.assert_allclose(measured.qualities(found), measured.qualities(gray), rtol=0.02)


def test_amounts_and_their_names(config):
    amounts = degrade.drawn(config, 400, np.random.default_rng(0))
    assert ((amounts.level == 0) == (amounts.kind == 0)).all()
    cells, names = degrade.cells(config, amounts), degrade.cell_names(config)
    assert set(cells) == set(range(len(names)))
    for cell, kind in zip(cells, amounts.kind, strict=True):
        assert names[cell].startswith(KINDS[kind])


def test_everybody_tests_once_and_is_in_one_part_of_a_fold(config):
    ids = np.repeat(np.arange(20), 3)
    folds = methods.folds(config, ids)
    np.testing.assert_array_equal(np.sort(np.concatenate([fold.test for fold in folds])), np.arange(60))
    for fold in folds:
        parts = [set(ids[rows]) for rows in fold]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 20
        assert len(fold.held_out) >= 6


def test_rank_correlation_knows_ties():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, 60), rng.normal(size=60)
    np.testing.assert_allclose(report._rank_correlation(first, second), spearmanr(first, second).statistic, rtol=1e-12)


def test_a_photo_without_a_face_leaves_the_others_with_their_amounts(tmp_path, monkeypatch):
    """The vectors of a network that sees the mean of a photo, and no face in two of the photos."""
    from PIL import Image

    config = quality_config.get_config("embedded").unlock()
    config.data.root, config.num_people = str(tmp_path), 3
    for person in range(4):
        (tmp_path / f"p{person}").mkdir()
        for shot in range(8):
            photo = np.full((20, 16, 3), 20 * person + shot + 60, np.uint8)
            Image.fromarray(photo).save(tmp_path / f"p{person}" / f"{shot}.png")

    def embedded(networks, photos, rows, options, *, num_shown):
        assert networks == "networks"
        assert num_shown == len(rows) == 3 * config.people.max_images
        kept = [row for row in rows if row not in (1, 7)]
        pixels = np.stack([photos.read(row) for row in kept])
        means = 255 * pixels.mean(axis=(1, 2))
        aligned = np.round(255 * pixels).astype(np.uint8)
        return {"features": means, "scores": np.linspace(0, 1, len(kept)), "photo": np.array(kept), "aligned": aligned}

    monkeypatch.setattr("experiments.embed.faces.load_networks", lambda min_score: "networks")
    monkeypatch.setattr("experiments.embed.faces.embedded", embedded)
    listing = faces.listed(config)
    found = study.faces_and_measures(config, listing)
    assert int(found["missed"]) == 2
    assert {len(found[name]) for name in ("x", "ids", "kind", "level", "detector")} == {16}
    assert found["measured"].shape == (2, 16)
    assert found["pictures"].shape[1:] == (len(KINDS), 20, 16)
    light = np.array([int(np.asarray(Image.open(path)).mean()) for path in listing.paths()])
    for person, kind, level, seen in zip(found["ids"], found["kind"], found["level"], found["x"], strict=True):
        own = light[listing.ids == person]
        factor = config.degrade.dark ** (level / config.degrade.num_levels) if KINDS[kind] == "dark" else 1
        assert factor * own.min() - 1 < seen[0] < factor * own.max() + 1
    assert "length of the vector" in methods.qualities_of(found)
