"""A seeded sample of faults, faults that repeat, and checks broken by hand, which must be seen."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.cluster import kmeans
from jaxface.core import fitinfo
from jaxface.data import embeddings, stream
from jaxface.runtime import params_io
from jaxface.subspace import lda
from tests.faults import cases, generate, numbers, processes, runs, study, verdict

SAMPLE = generate.many(100, seed=0)


@pytest.mark.parametrize("fault", SAMPLE, ids=[fault.name for fault in SAMPLE])
def test_a_fault_is_refused_or_the_result_is_right(fault):
    outcome = verdict.run(fault)
    assert outcome.is_right, f"{fault.what}: {outcome.text}\n    make faults ONLY={fault.name}"


def test_a_fault_is_a_function_of_its_name():
    for name in ("files:11", "processes:12", "numbers:13"):
        once, twice = generate.named(name), generate.named(name)
        assert once.what == twice.what
        assert verdict.run(once).word == verdict.run(twice).word
    with pytest.raises(ValueError, match="a fault is files:NUMBER"):
        generate.named("files")


def drawn(kind, words, count, seeds=3000):
    """The first faults of a kind whose description holds these words."""
    found = (fault for fault in map(generate.named, (f"{kind}:{seed}" for seed in range(seeds))) if words in fault.what)
    return itertools.islice(found, count)


def all_right(kind, words, count):
    return all(verdict.run(fault).is_right for fault in drawn(kind, words, count))


def nothing(*_, **__):
    return None


def test_arrays_that_are_not_checked_are_seen(monkeypatch):
    assert all_right("files", "whole: NaN", 1)
    monkeypatch.setattr(embeddings.checks, "finite", nothing)
    assert not all_right("files", "whole: NaN", 1)


def test_a_digest_that_is_not_compared_is_seen(monkeypatch):
    monkeypatch.setattr(params_io, "_digest", lambda *_: "same")
    assert not all_right("files", "verifier: damaged bytes", 200)


def test_an_error_that_names_no_file_is_seen(monkeypatch):
    def unnamed(*_, **__):
        raise ValueError("it is damaged")

    monkeypatch.setattr(stream, "from_npz", unnamed)
    assert not all_right("files", "parts: damaged bytes", 1)


def test_a_stage_that_was_changed_is_seen(tmp_path):
    run = runs._copied(tmp_path, "fit")
    with np.load(run / "stages" / "fit.npz") as arrays:
        np.savez(run / "stages" / "fit.npz", **{name: arrays[name] * 2 for name in arrays.files})
    (run / "digests.jsonl").unlink()
    with pytest.raises(verdict.Wrong, match="wrong result"):
        runs._again(tmp_path, "another stage", study.RUN)


def test_a_run_that_is_not_written_at_once_is_seen(tmp_path):
    """As after a kill in the middle of a file that has its name already."""
    study.write_data(tmp_path)
    processes.run(tmp_path, segments=False, trap={"at": processes.clean(False)[2] // 2, "does": "SIGKILL"})
    for file in (tmp_path / study.RUN / "stages").glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(verdict.Wrong, match="not resumed"):
        processes._judge(tmp_path, False, "half a stage")


def through(door, words):
    """A fault of one door whose description holds these words, outside of jit."""
    rng, what = np.random.default_rng(0), ""
    while words not in what or "under jit" in what:
        what, act, group = numbers.draw(rng, [door])
    return verdict.Fault("numbers:0", what, act, group)


def test_types_that_are_not_checked_are_seen(monkeypatch):
    assert verdict.run(through("subspace.lda.fit", ": float16 for x")).is_right
    monkeypatch.setattr(lda.checks, "floating", nothing)
    assert not verdict.run(through("subspace.lda.fit", ": float16 for x")).is_right


def test_nan_beside_ok_and_numbers_that_underflow_are_seen(monkeypatch):
    def silent(x, *_, **__):
        info = fitinfo.closed_form(dtype=x.dtype)
        return kmeans.KMeans(centers=x[:4] * jnp.sum(x**2) / jnp.sum(x**2)), info

    door = cases.doors()["cluster.kmeans.fit"]
    monkeypatch.setitem(
        cases.doors(), door.name, dataclasses.replace(door, case=dataclasses.replace(door.case, fn=silent))
    )
    for words in ("times 1e-25", "nan in"):
        assert not verdict.run(through(door.name, words)).is_right
