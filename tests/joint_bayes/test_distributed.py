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
found = {"objective": info.objective, **stats._asdict(), **vars(model)}
""".replace("PEOPLE", str(PEOPLE))


def test_two_processes_equal_one_device(tmp_path, rng):
    groups = draws.people(rng, draws.joint_bayes(rng))
    x, ids = draws.stacked(groups)
    x, ids = np.concatenate([x, np.zeros((3, 3))]), np.concatenate([ids, np.full(3, -1, np.int32)])
    order = rng.permutation(28)  # people are torn between the processes, and padding lies anywhere
    x, ids = x[order], ids[order]
    assert set(ids[:14]) & set(ids[14:]) - {-1}
    shares = [{"x": x[rows], "ids": ids[rows]} for rows in (slice(0, 14), slice(14, 28))]

    stats = collect(x, ids, num_people=PEOPLE, shift=np.zeros(3))
    model, info = fit(stats, init(stats), num_iters=5)
    expected = stats._asdict() | vars(model) | {"objective": info.objective}
    for found in two_processes.run(tmp_path, PROGRAM, shares):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
