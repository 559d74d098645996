"""What a study saves is loaded by the wheel alone, which holds jaxface and none of the studies."""

import json
import os
import pathlib
import subprocess
import sys
import zipfile

import jax
import numpy as np

from jaxface import verifier
from jaxface.data import synthetic
from jaxface.runtime import params_io

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """
import importlib.util, json, sys
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
import jaxface
from jaxface import verifier
from jaxface.runtime import params_io

model = params_io.load(sys.argv[1], verifier.Verifier)
points = verifier.encode_vectors(model, np.load(sys.argv[2]))
scores = verifier.score_pairs(model, points, np.array([0, 1]), np.array([2, 3]))
print(json.dumps([jaxface.__file__, importlib.util.find_spec("experiments") is None, np.asarray(scores).tolist()]))
"""


def test_the_wheel_alone_uses_a_saved_verifier(tmp_path, rng):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*build, str(tmp_path), str(_source(tmp_path))], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("jaxface-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    made = synthetic.gaussian_identities(rng, num_people=12, images_per_person=4, dim=6)
    model, _ = verifier.fit(
        jax.random.key(0), made.features, made.ids, num_people=12, num_components=4, num_iters=3, length_normalize=True
    )
    (tmp_path / "verifier.safetensors").write_bytes(params_io.to_bytes(model))
    np.save(tmp_path / "vectors.npy", made.features)
    arguments = [str(tmp_path / "verifier.safetensors"), str(tmp_path / "vectors.npy")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )  # fmt: skip
    place, has_no_studies, scores = json.loads(done.stdout)
    assert pathlib.Path(place).is_relative_to(tmp_path / "site")
    assert has_no_studies
    points = verifier.encode_vectors(model, made.features)
    np.testing.assert_allclose(scores, verifier.score_pairs(model, points, np.array([0, 1]), np.array([2, 3])))


def _source(folder: pathlib.Path) -> pathlib.Path:
    """The files of the package alone: building leaves traces in its source."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "jaxface"):
        os.symlink(ROOT / name, source / name)
    return source
