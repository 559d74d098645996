import numpy as np
import pytest

from jaxface.data import embeddings


@pytest.fixture
def table(rng):
    return rng.normal(size=(5, 3)).astype(np.float32), ["s10", "s2", "s10", "s2", "s1"]


def write(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_save_and_load(tmp_path, table):
    features, labels = table
    files = [f"{i}.png" for i in range(5)]
    embeddings.save(tmp_path / "x.npz", features, labels, files=files)
    data = embeddings.load(tmp_path / "x.npz")
    np.testing.assert_array_equal(data.features, features)
    assert data.names == ("s1", "s2", "s10")
    assert [data.names[i] for i in data.ids] == labels
    assert data.files == tuple(files)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


@pytest.mark.parametrize(("given", "kept"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")])
def test_precision(tmp_path, rng, given, kept):
    path = write(tmp_path / "x.npz", features=rng.normal(size=(3, 2)).astype(given), labels=np.array([4, 9, 4]))
    data = embeddings.load(path)
    assert data.features.dtype == kept
    assert data.names == (4, 9)
    assert data.files == ()


def test_compressed_archives_are_read(tmp_path, table):
    np.savez_compressed(tmp_path / "x.npz", features=table[0], labels=np.array(table[1]))
    assert embeddings.load(tmp_path / "x.npz").features.shape == (5, 3)


def test_nan_is_counted_and_located(tmp_path, table):
    features = table[0].copy()
    features[3, 1] = np.nan
    features[4, 0] = np.inf
    path = write(tmp_path / "x.npz", features=features, labels=np.array(table[1]))
    message = r"features of .*x\.npz must be finite; 2 of 15 values are NaN or infinite, the first at index \(3, 1\)"
    with pytest.raises(ValueError, match=message):
        embeddings.load(path)
    with pytest.raises(ValueError, match="features of these arrays must be finite"):
        embeddings.save(tmp_path / "y.npz", features, table[1])
    assert not (tmp_path / "y.npz").exists()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["a", "b"],
            r"labels of .*x\.npz must name the person of each of the 5 rows; got 2 labels\.",
        ),
        ([1, 2, -1, 1, 2], "got 5 labels, 1 of them None or -1"),
        (["a"] * 5, "must name at least 2 people; all 5 rows show 'a'"),
        ([0.5] * 5, "labels must be integers or strings; got dtype float64"),
    ],
)
def test_labels_that_do_not_fit(tmp_path, table, labels, message):
    path = write(tmp_path / "x.npz", features=table[0], labels=np.array(labels))
    with pytest.raises(ValueError, match=message):
        embeddings.load(path)


@pytest.mark.parametrize("features", [np.zeros((5, 0)), np.zeros((0, 3)), np.zeros(5), np.zeros((5, 3), int)])
def test_features_of_another_form(tmp_path, features):
    path = write(tmp_path / "x.npz", features=features, labels=np.array([1, 2, 1, 2, 1]))
    with pytest.raises(
        ValueError, match=r"features of .* must be floating point \[n, d\] with at least one row and column"
    ):
        embeddings.load(path)


def test_one_person_is_enough_when_asked_for(tmp_path, table):
    path = write(tmp_path / "x.npz", features=table[0], labels=np.array(["a"] * 5))
    assert embeddings.load(path, min_people=1).names == ("a",)
    path = write(tmp_path / "x.npz", features=table[0], labels=np.array(table[1]))
    with pytest.raises(ValueError, match="must name at least 4 people; got 3"):
        embeddings.load(path, min_people=4)


def test_pickles_are_refused(tmp_path, table):
    path = write(tmp_path / "x.npz", features=table[0], labels=np.array(table[1], object))
    with pytest.raises(ValueError, match=r"'labels' of .*x\.npz is an object array, which is a pickle and is not"):
        embeddings.load(path)


def test_a_missing_array_lists_what_exists(tmp_path, table):
    path = write(tmp_path / "x.npz", features=table[0], other=np.zeros(3))
    with pytest.raises(
        ValueError, match=r"x\.npz has no labels: it holds features float32 \[5, 3\], other float64 \[3\]"
    ):
        embeddings.load(path)


def test_files_that_are_no_strings(tmp_path, table):
    path = write(tmp_path / "x.npz", features=table[0], labels=np.array(table[1]), files=np.arange(5))
    with pytest.raises(ValueError, match=r"files of .*x\.npz must be strings"):
        embeddings.load(path)


def test_damaged_archives(tmp_path, table):
    path = write(tmp_path / "x.npz", features=table[0], labels=np.array(table[1]))
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    with pytest.raises(ValueError, match=r"x\.npz is not an \.npz archive"):
        embeddings.load(path)
    path.write_bytes(whole[:140] + bytes(10) + whole[150:])
    with pytest.raises(ValueError, match=r"x\.npz is damaged: 'features' has no readable data: BadZipFile: Bad CRC-32"):
        embeddings.load(path)
    with pytest.raises(FileNotFoundError, match="Embeddings must be a file"):
        embeddings.load(tmp_path / "none.npz")


def test_save_wants_the_suffix_and_the_folder(tmp_path, table):
    with pytest.raises(ValueError, match=r"path must end in \.npz"):
        embeddings.save(tmp_path / "x.bin", *table)
    with pytest.raises(FileNotFoundError, match=r"The folder of x\.npz must be a folder"):
        embeddings.save(tmp_path / "none" / "x.npz", *table)


def test_labels_and_files_that_do_not_fit_name_the_source(rng):
    x = rng.normal(size=(3, 2))
    with pytest.raises(ValueError, match="labels of mine: labels must be integers or strings; got dtype float64"):
        embeddings.from_arrays(x, np.zeros(3), source="mine")
    with pytest.raises(ValueError, match="files of mine must name each of the 3 rows or be empty; got 1 names"):
        embeddings.from_arrays(x, [0, 1, 1], files=["a"], source="mine")


def test_names_must_be_in_utf_8(rng):
    x, name = rng.normal(size=(2, 2)), "d\udce4n"
    with pytest.raises(ValueError, match=r"labels of mine: labels must have a name in UTF-8; got d\\xe4n"):
        embeddings.from_arrays(x, [name, "b"], source="mine")
    with pytest.raises(ValueError, match=r"files of mine must have a name in UTF-8; got d\\xe4n"):
        embeddings.from_arrays(x, ["a", "b"], files=["1", name], source="mine")
