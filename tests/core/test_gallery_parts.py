"""Several devices: `test_mesh.py`."""

import jax.numpy as jnp
import numpy as np

from jaxface.core import gallery_parts, mesh


def test_parts_hold_all_rows_in_order(monkeypatch):
    monkeypatch.setattr(gallery_parts, "ROWS_READ", 4)
    x = np.arange(20.0, dtype=np.float32).reshape(10, 2)
    for gallery in (x, jnp.asarray(x), mesh.shard(jnp.asarray(x), mesh.create("data", num_devices=1))):
        parts = list(gallery_parts.parts(gallery))
        np.testing.assert_array_equal(np.concatenate([part.x[: part.size] for part in parts]), x)
        assert [int(part.first) for part in parts] == ([0, 4, 8] if gallery is x else [0])
        assert len({part.x.shape for part in parts}) == 1
        rows = np.array([[3, 9], [-1, 0]])
        np.testing.assert_array_equal(gallery_parts.rows_at(gallery, rows), x[[[3, 9], [0, 0]]])
