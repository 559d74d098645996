"""The environment of every test: float64 available, silent rank promotion forbidden, one BLAS thread."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax
import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - loads the BLAS that JAX uses, so that the limit reaches it
import threadpoolctl

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
threadpoolctl.threadpool_limits(1, user_api="blas")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260711)
