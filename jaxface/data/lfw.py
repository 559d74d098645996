"""Labeled Faces in the Wild: images `<Name>/<Name>_0001.jpg` and the official protocol files.

scan, load               13,233 images of 5,749 people
listing_of               the photos that rows of embeddings show, so that the protocol needs no images
view1                    for choosing settings: pairsDevTrain, pairsDevTest, peopleDevTrain, peopleDevTest
view2                    for reporting: pairs.txt (10 folds of 300 same and 300 different pairs), people.txt
unrestricted_rows        training images of a fold: every person of the test fold is left out
restricted_pairs         training pairs of a fold: the pairs of the other folds, no names known
read_pairs, read_people  one protocol file, checked line by line against the images
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from jaxface.core import checks, messages
from jaxface.core.labels import dense
from jaxface.data import folders, storage
from jaxface.data.datasets import LabeledImages, Listing, people_with, take_people
from jaxface.data.pairs import Pairs

__all__ = [
    "CREDIT",
    "listing_of",
    "load",
    "read_pairs",
    "read_people",
    "restricted_pairs",
    "unrestricted_rows",
    "view1",
    "view2",
]

CREDIT = "Labeled Faces in the Wild, University of Massachusetts, Amherst"  # for the foot of a report


class View1(NamedTuple):
    """Development: people to train on and others to choose settings on."""

    listing: Listing
    train_pairs: Pairs
    test_pairs: Pairs
    train_people: np.ndarray  # int32 ids of the listing
    test_people: np.ndarray


class View2(NamedTuple):
    """Ten-fold cross-validation: the numbers that are published."""

    listing: Listing
    pairs: Pairs  # [6000]
    pair_fold: np.ndarray  # int32 [6000], in [0, 10)
    person_fold: np.ndarray  # int32 [c], in [0, 10); -1 for a person in no fold


def find(root: str | Path) -> Path:
    """The folder of the images: `root/lfw-deepfunneled`, `root/lfw` or `root` itself."""
    root = storage.existing_folder(root, "root")
    candidates = [root / "lfw-deepfunneled", root / "lfw", root]
    for folder in candidates:
        if folder.is_dir() and any((person / f"{person.name}_0001.jpg").is_file() for person in folder.iterdir()):
            return folder
    raise FileNotFoundError(
        "No LFW images <Name>/<Name>_0001.jpg in any of " + ", ".join(str(folder) for folder in candidates) + "."
    )


def scan(root: str | Path) -> Listing:
    """Lists the images without decoding them; a file of another form of name is an error."""
    listing = folders.scan(find(root), min_people=1, suffixes=(".jpg",), credit=CREDIT)
    for file, person in zip(listing.files, listing.ids, strict=True):
        name = str(listing.names[person])
        number = file.removeprefix(f"{name}/{name}_").removesuffix(".jpg")
        if len(number) != 4 or not number.isdecimal():
            raise ValueError(f"{listing.root}: {file!r} is not of the form {name}/{name}_0001.jpg.")
    return listing


def listing_of(files: Sequence[str], *, source: str) -> Listing:
    """The photos `[n]` that rows of embeddings show, for `view1` and `view2`: file names that end in `Name_0001`.

    Folders and the ending of a name do not count. `source` is where the names come from, for messages.
    """
    people, photos = [], []
    for file in files:
        stem = PurePosixPath(str(file)).stem
        name, _, number = stem.rpartition("_")
        if not name or len(number) != 4 or not number.isdecimal():
            raise ValueError(f"{source}: {file!r} is no photo of LFW; expected names such as Name/Name_0001.jpg.")
        people.append(name)
        photos.append(f"{name}/{stem}.jpg")
    if len(set(photos)) < len(photos):
        twice = next(photo for photo in photos if photos.count(photo) > 1)
        raise ValueError(f"{source} holds {twice!r} twice; the protocol has one row for each photo.")
    _, ids, names = dense(people)
    return Listing(root=Path(source), files=tuple(photos), ids=ids, names=names, credit=CREDIT)


def load(
    root: str | Path,
    *,
    min_images: int = 1,
    color: bool = False,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    workers: int = 4,
) -> LabeledImages:
    """Images of everybody with at least `min_images` images; options as in `images.read_image`."""
    listing = scan(root)
    people = people_with(listing.ids, min_rows=min_images)
    if people.size == 0:
        raise ValueError(f"min_images = {min_images} leaves nobody: the most is {np.bincount(listing.ids).max()}.")
    return folders.read(take_people(listing, people), color=color, size=size, crop=crop, workers=workers)


def view1(root: str | Path, *, listing: Listing | None = None) -> View1:
    """Reads the development view; checks that its halves share nobody and that pairs show people of their half.

    listing: the photos, such as `listing_of` names them; None looks for the images below `root`.
    """
    listing = scan(root) if listing is None else listing
    train, test = (_half(root, listing, half) for half in ("Train", "Test"))
    shared = np.intersect1d(train[1], test[1])
    if shared.size:
        raise ValueError(f"View 1 must train and test on different people; {listing.names[shared[0]]!r} is in both.")
    return View1(listing, train[0], test[0], train[1], test[1])


def view2(root: str | Path, *, listing: Listing | None = None) -> View2:
    """Reads the reporting view and checks that the pairs of a fold show only people of that fold.

    listing: the photos, such as `listing_of` names them; None looks for the images below `root`.
    """
    listing = scan(root) if listing is None else listing
    pairs, pair_fold = read_pairs(_protocol_file(root, "pairs.txt"), listing)
    person_fold = read_people(_protocol_file(root, "people.txt"), listing)
    _check_people_of_pairs(listing, pairs, pair_fold, person_fold, "people.txt")
    return View2(listing, pairs, pair_fold, person_fold)


def unrestricted_rows(view: View2, fold: int) -> np.ndarray:
    """Rows of the listing to train on when `fold` is the test fold: the images of people of all other folds."""
    _check_fold(view, fold)
    fold_of_row = view.person_fold[view.listing.ids]
    return np.flatnonzero((fold_of_row != fold) & (fold_of_row != -1))


def restricted_pairs(view: View2, fold: int) -> np.ndarray:
    """Positions in `view.pairs` to train on when `fold` is the test fold: the pairs of all other folds."""
    _check_fold(view, fold)
    return np.flatnonzero(view.pair_fold != fold)


def read_pairs(path: str | Path, listing: Listing) -> tuple[Pairs, np.ndarray]:
    """Pairs of rows of the listing and the fold of each `[p]`, from a file such as `pairs.txt`.

    The header is `folds p` or just `p`; each fold has p lines `name i j` (same person) and p `name i other j`.
    """
    path, (header, *lines) = _lines(path)
    numbers = [_count(path, header[0], word) for word in header[1]]
    if len(numbers) not in (1, 2):
        raise ValueError(f"{path}, line {header[0]}: expected the number of folds and of pairs; got {header[1]}.")
    num_folds, num_pairs = (1, *numbers)[-2:]
    if len(lines) != 2 * num_folds * num_pairs:
        raise ValueError(
            f"{path} must hold {num_folds} x 2 x {num_pairs} pairs after its header; got {len(lines)} lines."
        )
    row_of = {file: row for row, file in enumerate(listing.files)}
    rows, same = [], []
    for index, (number, fields) in enumerate(lines):
        same.append(index % (2 * num_pairs) < num_pairs)
        if len(fields) != (3 if same[-1] else 4):
            form = "a same pair, 'name i j'" if same[-1] else "a different pair, 'name i other j'"
            raise ValueError(f"{path}, line {number}: expected {form}; got {' '.join(fields)[:80]!r}.")
        name, i, other, j = (fields[0], fields[1], fields[0], fields[2]) if same[-1] else fields
        if not same[-1] and name == other:
            raise ValueError(f"{path}, line {number}: a different pair names {name!r} twice.")
        rows.append([_row(path, number, name, i, row_of), _row(path, number, other, j, row_of)])
    first, second = np.array(rows, np.int32).T
    fold = np.repeat(np.arange(num_folds, dtype=np.int32), 2 * num_pairs)
    return Pairs(first, second, np.array(same, bool)), fold


def read_people(path: str | Path, listing: Listing) -> np.ndarray:
    """Fold of each person of the listing, int32 `[c]`, -1 for people not named, from a file such as `people.txt`.

    The file has, for each fold, its number of people and then a line `name images` for each; with several folds
    the first line is the number of folds. The numbers of images must agree with the listing.
    """
    path, lines = _lines(path)
    several = len(lines) > 1 and len(lines[1][1]) == 1
    num_folds = _count(path, lines[0][0], lines[0][1][0]) if several else 1
    position = 1 if several else 0
    id_of = {str(name): person for person, name in enumerate(listing.names)}
    images = np.bincount(listing.ids, minlength=len(listing.names))
    fold_of = np.full(len(listing.names), -1, np.int32)
    for fold in range(num_folds):
        if position >= len(lines):
            raise ValueError(f"{path} must hold {num_folds} folds; it ends after {fold}.")
        number, fields = lines[position]
        size = _count(path, number, " ".join(fields))
        block = lines[position + 1 : position + 1 + size]
        if len(block) != size:
            raise ValueError(f"{path}, line {number}: expected {size} people; got {len(block)}.")
        for number, fields in block:
            person = _person(path, number, fields, id_of, images)
            if fold_of[person] != -1:
                raise ValueError(f"{path}, line {number}: {fields[0]!r} is named twice.")
            fold_of[person] = fold
        position += 1 + size
    if position != len(lines):
        raise ValueError(f"{path}, line {lines[position][0]}: expected the end of the file.")
    return fold_of


def _half(root: str | Path, listing: Listing, half: str) -> tuple[Pairs, np.ndarray]:
    """Pairs and people of one half of View 1."""
    pairs, pair_fold = read_pairs(_protocol_file(root, f"pairsDev{half}.txt"), listing)
    person_fold = read_people(_protocol_file(root, f"peopleDev{half}.txt"), listing)
    _check_people_of_pairs(listing, pairs, pair_fold, person_fold, f"peopleDev{half}.txt")
    return pairs, np.flatnonzero(person_fold == 0).astype(np.int32)


def _check_people_of_pairs(
    listing: Listing, pairs: Pairs, pair_fold: np.ndarray, person_fold: np.ndarray, people_file: str
) -> None:
    for rows in (pairs.first, pairs.second):
        stray = np.flatnonzero(person_fold[listing.ids[rows]] != pair_fold)
        if stray.size:
            raise ValueError(
                f"pairs must show people of their own fold; pair {stray[0]} is in fold {pair_fold[stray[0]]} and shows "
                f"{listing.files[rows[stray[0]]]!r}, whom {people_file} does not place there."
            )


def _protocol_file(root: str | Path, name: str) -> Path:
    candidates = [Path(root) / name, Path(root) / "lfw" / name, Path(root).parent / name]
    for path in candidates:
        if path.is_file():
            return path
    raise FileNotFoundError(f"No LFW protocol file {name}; looked for {', '.join(map(str, candidates))}.")


def _lines(path: str | Path) -> tuple[Path, list[tuple[int, list[str]]]]:
    """Line numbers and words of the lines that are not blank."""
    path = storage.existing_file(path, "A protocol file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 ({error}). Save it as such.") from error
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise ValueError(f"{path} is empty.")
    return path, lines


def _count(path: Path, number: int, word: str) -> int:
    if not _is_number(word) or int(word) < 1:
        raise ValueError(f"{path}, line {number}: expected a count of at least 1; got {word[:40]!r}.")
    return int(word)


def _is_number(word: str) -> bool:
    """Whole numbers of up to nine digits: `int` takes digits of other scripts, and refuses thousands of them."""
    return word.isascii() and word.isdecimal() and len(word) < 10


def _row(path: Path, number: int, name: str, image: str, row_of: dict[str, int]) -> int:
    where = f"{path}, line {number}"
    if "/" in name or name.startswith("."):
        raise ValueError(f"{where}: {name!r} leads outside the data root; expected the name of a person.")
    if not _is_number(image):
        raise ValueError(f"{where}: expected the number of an image; got {image[:40]!r}.")
    file = f"{name}/{name}_{int(image):04d}.jpg"
    if file not in row_of:
        raise ValueError(f"{where}: image {file!r} is missing. Is the copy of LFW complete?")
    return row_of[file]


def _person(path: Path, number: int, fields: list[str], id_of: dict[str, int], images: np.ndarray) -> int:
    where = f"{path}, line {number}"
    if len(fields) != 2 or not _is_number(fields[1]):
        raise ValueError(f"{where}: expected 'name images'; got {' '.join(fields)[:80]!r}.")
    if fields[0] not in id_of:
        raise ValueError(f"{where}: there is no folder of {fields[0]!r}.{messages.did_you_mean(fields[0], id_of)}")
    person = id_of[fields[0]]
    if images[person] != int(fields[1]):
        raise ValueError(f"{where}: {fields[0]!r} must have {fields[1]} images; got {images[person]}.")
    return person


def _check_fold(view: View2, fold: int) -> None:
    checks.at_least("fold", fold, 0)
    checks.at_most("fold", fold, int(view.pair_fold.max()), "the last fold")
