"""One reader of vectors: every format from a file made here."""

import numpy as np
import pytest

from jaxface.data import embeddings


@pytest.fixture
def x(rng):
    return rng.normal(size=(5, 3)).astype(np.float32)


PEOPLE = ["s10", "s2", "s10", "s2", "s1"]
FILES = ("a.png", "b.png", "c.png", "d.png", "e.png")


def check(found, x, *, files=FILES):
    np.testing.assert_array_equal(found.features, x)
    assert [found.names[k] for k in found.ids] == PEOPLE
    assert found.files == files


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("emb", "who", "path"), {}),
        (("X", "y", "filenames"), {}),
        (("one", "labels", "two"), {"files": "two"}),
        (("vectors", "a", "b"), {"labels": "a", "files": "b"}),
    ],
)
def test_archives_with_other_names(tmp_path, x, names, options):
    np.savez(tmp_path / "x.npz", **dict(zip(names, (x, PEOPLE, FILES), strict=True)), note=np.array("hello"))
    check(embeddings.load(tmp_path / "x.npz", **options), x)


def test_archives_that_leave_a_choice(tmp_path, x):
    np.savez(tmp_path / "x.npz", left=x, right=2 * x, one=PEOPLE, two=PEOPLE)
    with pytest.raises(ValueError, match=r"several arrays of vectors: left float32 \[5, 3\], one .*features=NAME"):
        embeddings.load(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"may be the labels: one, two\. .* labels=NAME"):
        embeddings.load(tmp_path / "x.npz", features="right")
    check(embeddings.load(tmp_path / "x.npz", features="right", labels="two"), 2 * x, files=())
    with pytest.raises(ValueError, match=r"must hold 'riht'; .*Did you mean 'right'"):
        embeddings.load(tmp_path / "x.npz", features="riht", labels="two")
    np.savez(tmp_path / "y.npz", table=np.arange(6).reshape(2, 3))
    with pytest.raises(ValueError, match=r"no floating array \[n, d\]: table int64 \[2, 3\]"):
        embeddings.load(tmp_path / "y.npz")


def test_labels_of_bytes_and_in_a_column(tmp_path, x):
    np.savez(tmp_path / "x.npz", features=x, labels=np.array(PEOPLE, "S")[:, None])
    check(embeddings.load(tmp_path / "x.npz"), x, files=())


def test_no_labels_where_none_are_needed(tmp_path, x):
    np.savez(tmp_path / "x.npz", features=x, files=FILES)
    found = embeddings.load(tmp_path / "x.npz", min_people=0)
    assert (found.names, found.ids.tolist(), found.files) == ((), [-1] * 5, FILES)
    with pytest.raises(ValueError, match=r"has no labels: it holds features .* labels=FILE"):
        embeddings.load(tmp_path / "x.npz", min_people=1)


def test_arrays_that_are_refused(tmp_path, x):
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(ValueError, match=r"x\.npy has no labels\. .*labels=FILE"):
        embeddings.load(tmp_path / "x.npy")
    with pytest.raises(FileNotFoundError, match=r"none\.txt is there neither"):
        embeddings.load(tmp_path / "x.npy", labels="none.txt")
    with pytest.raises(ValueError, match="features='v' has no meaning"):
        embeddings.load(tmp_path / "x.npy", features="v", labels="x.npy")
    np.save(tmp_path / "objects.npy", np.array([x, None], object))
    with pytest.raises(ValueError, match="is an object array, which is a pickle and is not loaded"):
        embeddings.load(tmp_path / "objects.npy", min_people=0)
    (tmp_path / "short.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"short\.npy is damaged"):
        embeddings.load(tmp_path / "short.npy", min_people=0)
    np.save(tmp_path / "nan.npy", np.where(x == x[2, 1], np.nan, x))
    with pytest.raises(ValueError, match=r"nan\.npy must be finite; 1 of 15 .* \(2, 1\)"):
        embeddings.load(tmp_path / "nan.npy", min_people=0)
