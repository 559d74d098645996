"""Row F2: from the start of a process to a first Joint Bayes score."""

import subprocess
import sys
import time

import numpy as np

from benchmarks.rows import Row, Timed, cost

_FIRST_SCORE = """
import jax, numpy as np
from jaxface import joint_bayes
from jaxface.runtime import environment, resources
resources.freeze_imports()
environment.use_compilation_cache()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
eye, one = np.eye(128, dtype=np.float32), np.ones(128, np.float32)
model = joint_bayes.JointBayes(mean=0 * one, identity_cov=eye, noise_cov=2 * eye)
print(float(jax.jit(joint_bayes.llr)(model, one, one)))
"""
_FIRST_LDA = "import sklearn.discriminant_analysis; print(0.0)"


_BARE = "import jax, scipy.linalg.cython_blas; jax.devices(); print(0.0)"


def _process(code: str) -> Timed:
    """A whole Python process: from its start to its end."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return Timed(float(done.stdout), time.perf_counter() - begin)


def _right_score(_: None, ours: float, __: float) -> str:
    # 128 directions with l = 1/2 and x = 1 under noise 2: z = 1 / sqrt 2 in each.
    ratio, z = 0.5, np.sqrt(0.5)
    one, two = ratio / (1 + ratio), ratio / (1 + 2 * ratio)
    expected = 128 * (two * (2 * z) ** 2 / 2 - one * z**2 + np.log1p(ratio) - np.log1p(2 * ratio) / 2)
    assert abs(ours - expected) < 1e-3 * abs(expected), f"{ours} is not {expected}"
    return f"the score is {expected:.3f}"


ROWS = (
    Row(
        name="F2",
        work="process start to a first Joint Bayes score, d = 128, programs in the compilation cache",
        peer="import of scikit-learn's LDA alone",
        dtype="float32",
        data=lambda: None,
        ours=lambda _: _process(_FIRST_SCORE),
        theirs=lambda _: _process(_FIRST_LDA),
        agree=_right_score,
        target=cost(at_most=0.9),
        packages=("scikit-learn",),
        floor=lambda _: _process(_BARE),
        floor_work="a process that imports JAX and the LAPACK that its Cholesky calls, and ends",
        is_weighed=False,
    ),
)
