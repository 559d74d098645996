"""Two processes of two CPU devices each must give the statistics and the fit of one device."""

import numpy as np

from jaxface.joint_bayes import collect, fit, init
from tests import two_processes
from tests.joint_bayes import draws

PEOPLE = 13

PROGRAM = """
from jaxface import joint_bayes

collect = jax.jit(joint_bayes.collect, static_argnames="num_people")
stats = collect(share["x"], share["ids"], num_people=PEOPLE, shift=np.zeros(3))
model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=5)

# Each reads its own share of one file; a row that only the second reads is NaN.
from jaxface.data import stream
def collected(name):
    source = stream.from_npy(f"{folder}/{name}.npy")._replace(ids=np.load(f"{folder}/ids.npy"))
    weights = np.load(f"{folder}/weights.npy")
    return joint_bayes.collect_stream(source, num_people=PEOPLE, batch_size=5, weights=weights)
of_stream = joint_bayes.recenter(collected("x"), np.zeros(3))._asdict()
try:
    collected("damaged")
except ValueError as error:
    message = str(error)
found = {"message": message, "objective": info.objective, **dict(zip(stats._fields, stats[:4])), **vars(model)}
found |= {f"stream_{name}": value for name, value in of_stream.items()}
""".replace("PEOPLE", str(PEOPLE))


def test_two_processes_equal_one_device(tmp_path, rng):
    groups = draws.people(rng, draws.joint_bayes(rng))
    x, ids = draws.stacked(groups)
    x, ids = np.concatenate([x, np.zeros((3, 3))]), np.concatenate([ids, np.full(3, -1, np.int32)])
    order = rng.permutation(28)  # people are torn between the processes, and padding lies anywhere
    x, ids = x[order], ids[order]
    assert set(ids[:14]) & set(ids[14:]) - {-1}
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "ids.npy", ids)
    bad = np.flatnonzero(ids >= 0)[-1]
    np.save(tmp_path / "damaged.npy", np.where((np.arange(28) == bad)[:, None], np.nan, x))
    weights = rng.uniform(0.5, 2, size=28)
    np.save(tmp_path / "weights.npy", weights)
    shares = [{"x": x[rows], "ids": ids[rows]} for rows in (slice(0, 14), slice(14, 28))]

    stats = collect(x, ids, num_people=PEOPLE, shift=np.zeros(3))
    model, info = fit(stats, init(stats), num_iters=5)
    expected = dict(zip(stats._fields[:4], stats, strict=False)) | vars(model) | {"objective": info.objective}
    weighted = collect(x, ids, num_people=PEOPLE, shift=np.zeros(3), weights=weights)
    expected |= {f"stream_{name}": value for name, value in weighted._asdict().items()}
    both = two_processes.run(tmp_path, PROGRAM, shares)
    assert "damaged.npy could not be used by another process" in str(both[0]["message"])
    assert f"damaged.npy must be finite; row {bad} holds NaN" in str(both[1]["message"])
    for found in both:
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
