"""Statistics of a stream against those of the rows in memory, and what goes wrong on the way."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.data import stream
from jaxface.joint_bayes import collect, collect_stream, fit, init, merge
from tests.joint_bayes.test_stats import definition
from tests.tolerances import assert_close

N, D, PEOPLE = 50, 3, 6  # person 4 has no row, person 5 one


@pytest.fixture
def ids(rng):
    ids = rng.integers(-1, 4, size=N)
    ids[[0, 20]] = -1, 5
    return ids


@pytest.fixture
def x(rng):
    return rng.normal(size=(N, D)) * [3, 2, 1] + 5


def source_of(x, ids):
    """Ids as they are: `from_array` would make them dense."""
    return stream.from_array(x)._replace(ids=ids.astype(np.int32))


def counted(source, calls):
    def read_range(start, stop):
        calls.append((start, stop))
        return source.read_range(start, stop)

    return source._replace(read_range=read_range)


@pytest.mark.parametrize("batch_size", [1, 7, 25, 50, 10**12])
def test_a_stream_has_the_statistics_of_its_rows(batch_size, x, ids):
    stats = collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=batch_size)
    assert_close(tuple(stats[:3]), definition(x, ids, PEOPLE, np.asarray(stats.shift)), factor=0.1)
    first = x[1 : min(1 + batch_size, N)]  # row 0 has no person
    assert_close(stats.shift, first[ids[1 : 1 + len(first)] >= 0].mean(axis=0))
    assert_close(collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=7, shift=stats.shift), stats)


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f4", "uint8", "int16", "bool", "float64"])
def test_what_is_on_disk_is_converted_batch_by_batch(dtype, x, ids, tmp_path):
    np.save(tmp_path / "x.npy", (x > 5) if dtype == "bool" else np.abs(10 * x).astype(dtype))
    source = stream.from_npy(tmp_path / "x.npy")._replace(ids=ids.astype(np.int32))
    stats = collect_stream(source, num_people=PEOPLE, batch_size=20)
    assert stats.sum.dtype == (np.float64 if dtype == "float64" else np.float32)
    stored = np.load(tmp_path / "x.npy").astype(float)
    assert_close(tuple(stats[:3]), definition(stored, ids, PEOPLE, np.asarray(stats.shift, float)))


def test_shares_merge_to_the_whole(x, ids):
    """Three processes without `jax.distributed`, one after the other; the last share is shorter."""
    whole = collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=20)
    parts = [
        collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=20, process_index=p, process_count=3)
        for p in range(3)
    ]
    assert_close(merge(merge(*parts[:2]), parts[2]), whole)
    empty = collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=20, process_index=50, process_count=51)
    assert float(empty.count.sum()) == 0
    assert_close(merge(whole, empty), whole)


def test_each_row_is_read_once_and_the_first_batch_twice(x, ids):
    calls = []
    collect_stream(counted(source_of(x, ids), calls), num_people=PEOPLE, batch_size=20)
    assert calls == [(1, 21), (0, 20), (20, 40), (40, 50)]


def test_the_fit_is_that_of_the_rows_in_memory(x, ids):
    stats = collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=20)
    expected = collect(x, ids, num_people=PEOPLE, shift=x.mean(axis=0))
    start = init(expected)
    assert_close(init(stats), start)
    assert_close(fit(stats, start, num_iters=3)[0], fit(expected, start, num_iters=3)[0], factor=10)


def test_float32_loses_no_digits_over_many_batches(rng):
    """Least of four variances that span 1e8, with an offset of a hundred standard deviations of the largest."""
    x = (rng.normal(size=(20_000, 4)) * [1, 1e-1, 1e-2, 1e-4] @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 100).astype(
        np.float32
    )
    ids = np.zeros(len(x), np.int32)
    stats = collect_stream(source_of(x, ids), num_people=1, batch_size=50)
    expected = definition(x.astype(float), ids, 1, np.asarray(stats.shift, float))[2]
    assert stats.second_moment.dtype == np.float32
    np.testing.assert_allclose(stats.second_moment, expected, rtol=0, atol=3e-7 * expected.max())


def test_batches_in_flight_are_bounded(x, ids, monkeypatch):
    """The reader is never more than three batches ahead of the last one that the device has finished."""
    from jaxface.joint_bayes import stream as module

    read, added, ahead = [], [], []

    class Done:
        def block_until_ready(self):
            added.append(1)
            ahead.append(len(read) - len(added))

    monkeypatch.setattr(module, "_with_batch", lambda running, x, ids, weights: (running, Done()))
    collect_stream(counted(source_of(x, ids), read), num_people=PEOPLE, batch_size=2)
    assert len(added) == 25 - 2
    assert max(ahead) <= 4


@pytest.mark.parametrize(("row", "value"), [(3, np.nan), (33, np.inf), (49, -np.inf)])
def test_a_row_that_is_not_finite_is_named(row, value, x, ids, tmp_path):
    ids[row] = 2
    x[row, 1] = value
    np.save(tmp_path / "x.npy", x)
    source = stream.from_npy(tmp_path / "x.npy")._replace(ids=ids.astype(np.int32))
    with pytest.raises(ValueError, match=rf"x\.npy must be finite; row {row} holds NaN or infinity, the .* column 1"):
        collect_stream(source, num_people=PEOPLE, batch_size=20)
    ids[row] = -1  # nobody's row may hold anything
    source = source._replace(ids=ids.astype(np.int32))
    stats = collect_stream(source, num_people=PEOPLE, batch_size=20)
    assert_close(tuple(stats[:3]), definition(x, ids, PEOPLE, np.asarray(stats.shift)), factor=0.1)


def test_an_error_of_the_reader_is_raised(x, ids, tmp_path):
    np.save(tmp_path / "x.npy", x)
    source = stream.from_npy(tmp_path / "x.npy")._replace(ids=ids.astype(np.int32))
    with (tmp_path / "x.npy").open("r+b") as file:
        file.truncate(128 + 8 * D * 30)
    with pytest.raises(ValueError, match=r"x\.npy ends before row 40: it has become shorter"):
        collect_stream(source, num_people=PEOPLE, batch_size=20)


def test_nobody_known_gives_no_images(x):
    stats = collect_stream(source_of(x, np.full(N, -1)), num_people=2, batch_size=20)
    assert all(float(jnp.abs(leaf).max()) == 0 for leaf in stats[:4])


def test_a_distant_shift_is_refused_where_digits_would_be_lost(x, ids):
    far, message = np.full(D, -1000.0), r"shift must be near the mean of the source; it is \d+ standard dev.*float32"
    with pytest.raises(ValueError, match=message):
        collect_stream(source_of(x.astype(np.float32), ids), num_people=PEOPLE, batch_size=20, shift=far)
    stats = collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=20, shift=far)  # in float64
    assert_close(tuple(stats[:3]), definition(x, ids, PEOPLE, far))


def test_a_first_batch_unlike_the_rest_is_refused(rng):
    """The only known row of the first batch is an outlier."""
    x, ids = rng.normal(size=(8000, D)).astype(np.float32), np.zeros(8000, int)
    x[0], ids[1:4000] = 1e4, -1
    with pytest.raises(ValueError, match=r"must be near the mean .* Give as shift the mean of some rows"):
        collect_stream(source_of(x, ids), num_people=1, batch_size=4000)
    collect_stream(source_of(x, ids), num_people=1, batch_size=4000, shift=x[4000:].mean(axis=0))


@pytest.mark.parametrize("number", [1, 2])
def test_few_rows_may_be_anywhere(number, x, ids):
    """One row has no variance, and one share of many may lie far from the shift of all."""
    x, ids = x[20 : 20 + number].astype(np.float32), np.zeros(number, int)
    if number == 1:
        stats = collect_stream(source_of(x, ids), num_people=1, batch_size=9, shift=np.full(D, 100.0))
    else:
        part = {"process_index": 1, "process_count": 2}
        stats = collect_stream(source_of(x, ids), num_people=1, batch_size=9, shift=np.full(D, 100.0), **part)
        x = x[1:]
    assert_close(tuple(stats[:3]), definition(x, ids[:1], 1, np.full(D, 100.0)))


def test_squares_beyond_the_type_are_an_error(x, ids):
    with pytest.raises(ValueError, match="the source holds numbers whose squares float32 cannot hold"):
        collect_stream(source_of((x * 1e20).astype(np.float32), ids), num_people=PEOPLE, batch_size=20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"num_people": 5}, r"the ids of the source must be in \[0, 5\) or -1 for padding; got values from -1 to 5"),
        ({"shift": np.zeros(2)}, r"shift must have shape \[3\]; got shape \(2,\)"),
        ({"shift": np.full(3, np.nan)}, "shift must be finite"),
        ({"process_index": 0}, "process_index and process_count must be given together"),
        ({"process_index": 2, "process_count": 2}, r"process_index must be at most 1 \(process_count - 1\); got 2"),
    ],
)
def test_errors_of_arguments(change, message, x, ids):
    with pytest.raises(ValueError, match=message):
        collect_stream(source_of(x, ids), **({"num_people": PEOPLE, "batch_size": 20} | change))


def test_errors_of_sources(x, ids):
    source = source_of(x, ids)
    arguments = {"num_people": PEOPLE, "batch_size": 20}
    with pytest.raises(ValueError, match="the number of rows of the source must be at least 1; got 0"):
        collect_stream(source._replace(num_rows=0), **arguments)
    with pytest.raises(ValueError, match=r"the source must hold vectors \[n, d\]; its rows have shape \(2, 2\)"):
        collect_stream(stream.from_array(np.zeros((4, 2, 2))), **arguments)
    with pytest.raises(ValueError, match=r"ids must have shape \[50\]; got shape \(49,\)"):
        collect_stream(source._replace(ids=source.ids[1:]), **arguments)


def test_one_program_for_all_batches(x, ids):
    from jaxface.joint_bayes import stream as module

    collect_stream(source_of(x, ids), num_people=PEOPLE, batch_size=20)
    before = module._with_batch._cache_size()
    collect_stream(source_of(x + 1, ids), num_people=PEOPLE, batch_size=20)
    assert module._with_batch._cache_size() == before
