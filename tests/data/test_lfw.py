import numpy as np
import pytest

from jaxface.data import lfw
from tests.datasets import real

COUNTS = {"Ann": 3, "Bob": 2, "Cy": 2, "Di": 2, "Eva": 1, "Al-Hakim": 1}
PAIRS = (
    "2\t1\n"
    "Ann\t1\t3\n"  # fold 0: Ann, Bob, Eva
    "Ann\t1\tBob\t2\n"
    "Cy\t1\t2\n"  # fold 1: Cy, Di
    "Cy\t1\tDi\t2\n"
)
PEOPLE = "2\n3\nAnn\t3\nBob\t2\nEva\t1\n2\nCy\t2\nDi\t2\n\n"


@pytest.fixture
def root(tmp_path, write_image):
    for name, count in COUNTS.items():
        for number in range(1, count + 1):
            write_image(tmp_path / "lfw-deepfunneled" / name / f"{name}_{number:04d}.jpg")
    (tmp_path / "pairs.txt").write_text(PAIRS)
    (tmp_path / "people.txt").write_text(PEOPLE)
    (tmp_path / "pairsDevTrain.txt").write_text("1\nAnn\t1\t2\nAnn\t1\tBob\t1\n")
    (tmp_path / "pairsDevTest.txt").write_text("1\nCy\t1\t2\nDi\t1\tCy\t1\n")
    (tmp_path / "peopleDevTrain.txt").write_text("2\nAnn\t3\nBob\t2\n")
    (tmp_path / "peopleDevTest.txt").write_text("2\nCy\t2\nDi\t2")
    return tmp_path


def files_of(view, rows):
    return [view.listing.files[row] for row in rows]


def test_view2_of_a_small_copy(root):
    view = lfw.view2(root)
    assert view.pairs.is_same.tolist() == [True, False, True, False]
    assert view.pair_fold.tolist() == [0, 0, 1, 1]
    assert files_of(view, view.pairs.first) == [
        "Ann/Ann_0001.jpg",
        "Ann/Ann_0001.jpg",
        "Cy/Cy_0001.jpg",
        "Cy/Cy_0001.jpg",
    ]
    assert files_of(view, view.pairs.second) == [
        "Ann/Ann_0003.jpg",
        "Bob/Bob_0002.jpg",
        "Cy/Cy_0002.jpg",
        "Di/Di_0002.jpg",
    ]
    fold = dict(zip(view.listing.names, view.person_fold.tolist(), strict=True))
    assert fold == {"Ann": 0, "Bob": 0, "Eva": 0, "Cy": 1, "Di": 1, "Al-Hakim": -1}


def test_training_sets_of_a_fold(root):
    view = lfw.view2(root)
    assert {file.split("/")[0] for file in files_of(view, lfw.unrestricted_rows(view, 0))} == {"Cy", "Di"}
    assert {file.split("/")[0] for file in files_of(view, lfw.unrestricted_rows(view, 1))} == {
        "Ann",
        "Bob",
        "Eva",
    }
    assert lfw.unrestricted_rows(view, 1).size == 6
    assert lfw.restricted_pairs(view, 0).tolist() == [2, 3]
    with pytest.raises(ValueError, match="fold must be at most 1"):
        lfw.unrestricted_rows(view, 2)


def test_view1_of_a_small_copy(root):
    view = lfw.view1(root)
    assert files_of(view, view.train_pairs.second) == ["Ann/Ann_0002.jpg", "Bob/Bob_0001.jpg"]
    assert [view.listing.names[person] for person in view.test_people] == ["Cy", "Di"]
    assert view.test_pairs.is_same.tolist() == [True, False]


@pytest.mark.parametrize("name", ["lfw", "."])
def test_other_places_of_the_images(root, name):
    folder = root / "lfw-deepfunneled"
    if name == "lfw":
        folder.rename(root / "lfw")
    else:
        for person in folder.iterdir():
            person.rename(root / person.name)
        folder.rmdir()
    assert len(lfw.view2(root).listing.files) == 11


def test_the_protocol_beside_the_folder_of_images(root):
    assert len(lfw.view2(root / "lfw-deepfunneled").pairs.is_same) == 4


def test_load_with_a_minimum_of_images(root):
    data = lfw.load(root, min_images=2, size=(3, 3))
    assert data.names == ("Ann", "Bob", "Cy", "Di")
    assert data.ids.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert data.images.shape == (9, 3, 3)
    with pytest.raises(ValueError, match="min_images = 4 leaves nobody: the most is 3"):
        lfw.load(root, min_images=4)


def test_no_images_and_no_protocol(root, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"No LFW images .*lfw-deepfunneled"):
        lfw.scan(tmp_path / "empty")
    (root / "people.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"No LFW protocol file people\.txt; looked for"):
        lfw.view2(root)


def test_a_file_of_another_name(root, write_image):
    write_image(root / "lfw-deepfunneled" / "Ann" / "Bob_0001.jpg")
    with pytest.raises(ValueError, match=r"'Ann/Bob_0001\.jpg' is not of the form Ann/Ann_0001\.jpg"):
        lfw.scan(root)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Ann\t1\t3", "Ann\t1\t4", r"pairs\.txt, line 2: image 'Ann/Ann_0004\.jpg' is missing"),
        (
            "Bob\t2",
            "../../etc/passwd\t2",
            r"pairs\.txt, line 3: '\.\./\.\./etc/passwd' leads outside the data root",
        ),
        ("Cy\t1\t2\n", "", r"pairs\.txt must hold 2 x 2 x 1 pairs after its header; got 3 lines"),
        ("Cy\t1\t2\n", "Cy\t1\tDi\t2\n", r"line 4: expected a same pair, 'name i j'; got 'Cy 1 Di 2'"),
        ("Ann\t1\tBob\t2", "Ann\t1\t2", r"line 3: expected a different pair"),
        ("Ann\t1\tBob\t2", "Ann\t1\tAnn\t2", r"line 3: a different pair names 'Ann' twice"),
        ("Ann\t1\t3", "Ann\tone\t3", r"line 2: expected the number of an image; got 'one'"),
        ("2\t1\n", "two\t1\n", r"line 1: expected a count of at least 1; got 'two'"),
        ("2\t1\n", "2\t1\t1\n", r"line 1: expected the number of folds and of pairs"),
        (
            "Di\t2",
            "Ann\t2",
            r"pair 3 is in fold 1 and shows 'Ann/Ann_0002\.jpg', whom people\.txt does not place",
        ),
        (PAIRS, "\n", r"pairs\.txt is empty"),
    ],
)
def test_damaged_pairs_files(root, old, new, message):
    (root / "pairs.txt").write_text(PAIRS.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        lfw.view2(root)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Bob\t2", "Bob\t3", r"people\.txt, line 4: 'Bob' must have 3 images; got 2"),
        ("Bob\t2", "Bab\t2", r"line 4: there is no folder of 'Bab'\. Did you mean 'Bob'\?"),
        ("Bob\t2", "Ann\t3", r"line 4: 'Ann' is named twice"),
        ("Bob\t2", "Bob", r"line 4: expected 'name images'; got 'Bob'"),
        ("2\n3\n", "2\n9\n", r"line 2: expected 9 people; got"),
        ("2\n3\n", "3\n3\n", r"must hold 3 folds; it ends after 2"),
        ("Di\t2\n", "Di\t2\nEva\t1\n", r"line 9: expected the end of the file"),
    ],
)
def test_damaged_people_files(root, old, new, message):
    (root / "people.txt").write_text(PEOPLE.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        lfw.view2(root)


@pytest.mark.parametrize("name", ["pairs.txt", "people.txt"])
def test_protocol_files_in_other_encodings(root, name):
    path = next(root.rglob(name))
    text = path.read_text()
    path.write_text(text, encoding="utf-8-sig")
    lfw.view2(root)
    for content in (text.encode("utf-16"), text.encode() + b"\xff"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name} is not text in UTF-8 \(.*Save it as such"):
            lfw.view2(root)
    for number in ("9" * 5000, "\u0663"):
        path.write_text(f"{number}\n{text}", encoding="utf-8")
        with pytest.raises(ValueError, match=rf"{name}, line 1: expected a count of at least 1; got"):
            lfw.view2(root)


def test_photos_of_embeddings_take_the_place_of_images(root):
    whole = lfw.view2(root)
    files = [f"a/b/{file}".replace(".jpg", ".npy") for file in reversed(whole.listing.files)]
    listing = lfw.listing_of(files, source="vectors.npz")
    found = lfw.view2(root, listing=listing)
    for rows, others in zip(found.pairs[:2], whole.pairs[:2], strict=True):
        assert [listing.files[row] for row in rows] == [whole.listing.files[row] for row in others]
    people = dict(zip(listing.names, found.person_fold, strict=True))
    assert people == dict(zip(whole.listing.names, whole.person_fold, strict=True))
    for wrong in ("Ann_1.jpg", "_0001.jpg", "Ann.jpg"):
        with pytest.raises(ValueError, match=r"vectors.npz: '.*' is no photo of LFW; expected names such as Name"):
            lfw.listing_of([wrong], source="vectors.npz")
    with pytest.raises(ValueError, match=r"vectors.npz holds '.*' twice"):
        lfw.listing_of([files[0], files[0]], source="vectors.npz")


def test_view1_with_somebody_in_both_halves(root):
    (root / "peopleDevTest.txt").write_text("3\nCy\t2\nDi\t2\nAnn\t3\n")
    with pytest.raises(ValueError, match="'Ann' is in both"):
        lfw.view1(root)


def test_the_official_protocol():
    view = lfw.view2(real("lfw"))
    assert (len(view.listing.files), len(view.listing.names)) == (13233, 5749)
    assert view.pairs.is_same.sum() == 3000
    assert np.bincount(view.pair_fold).tolist() == [600] * 10
    assert np.bincount(view.person_fold).tolist() == [601, 555, 552, 560, 567, 527, 597, 601, 580, 609]
    for fold in range(10):
        test = view.pair_fold == fold
        people = np.union1d(*(view.listing.ids[rows[test]] for rows in view.pairs[:2]))
        training = lfw.unrestricted_rows(view, fold)
        assert not np.isin(view.listing.ids[training], people).any()
        assert lfw.restricted_pairs(view, fold).size == 5400
    one_person = view.listing.ids[view.pairs.first] == view.listing.ids[view.pairs.second]
    np.testing.assert_array_equal(one_person, view.pairs.is_same)


def test_the_official_development_view():
    view = lfw.view1(real("lfw"))
    assert (view.train_pairs.is_same.size, view.test_pairs.is_same.size) == (2200, 1000)
    assert (view.train_people.size, view.test_people.size) == (4038, 1711)


def test_images_of_the_official_copy():
    data = lfw.load(real("lfw"), min_images=100, crop=(75, 75, 100, 100), size=(32, 32))
    assert data.names == (
        "Colin_Powell",
        "Donald_Rumsfeld",
        "George_W_Bush",
        "Gerhard_Schroeder",
        "Tony_Blair",
    )
    assert data.images.shape == (1140, 32, 32)
