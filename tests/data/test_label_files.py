"""Labels in a text file beside an array."""

import numpy as np
import pytest

from jaxface.data import embeddings
from tests.data.test_vector_files import FILES, PEOPLE, check


@pytest.fixture
def x(rng):
    return rng.normal(size=(5, 3)).astype(np.float32)


def test_an_array_beside_a_text_file(tmp_path, x):
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    for name, text in (
        ("plain.txt", "\n".join(PEOPLE)),
        ("crlf.txt", "\ufeff" + "\r\n".join(PEOPLE) + "\r\n\r\n"),
        ("head.txt", "label\n" + "\n".join(PEOPLE)),
    ):
        (tmp_path / name).write_text(text, newline="")
        check(embeddings.load(tmp_path / "x.npy", labels=name), x, files=())
    np.save(tmp_path / "people.npy", np.array(PEOPLE))
    check(embeddings.load(tmp_path / "x.npy", labels="people.npy"), x, files=())
    np.save(tmp_path / "numbers.npy", np.array([7, 7, 3, 3, 9]))
    assert embeddings.load(tmp_path / "x.npy", labels="numbers.npy").names == (3, 7, 9)
    table = ["file,person,age", *(f'"{file}",{who},30' for file, who in zip(FILES, PEOPLE, strict=True))]
    (tmp_path / "table.csv").write_text("\n".join(table))
    check(embeddings.load(tmp_path / "x.npy", labels=str(tmp_path / "table.csv")), x)
    check(embeddings.load(tmp_path / "x.npy", labels="table.csv:2"), x)
    assert embeddings.load(tmp_path / "x.npy", labels="table.csv:age", min_people=1).names == ("30",)
    np.savez(tmp_path / "x.npz", v=x)
    check(embeddings.load(tmp_path / "x.npz", labels="table.csv"), x)
    assert embeddings.sources(tmp_path / "x.npy", labels="table.csv:person") == (
        tmp_path / "x.npy",
        tmp_path / "table.csv",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb", r"labels\.txt must have a label for each of the 5 rows of .*x\.npy; it has 2, the first 'a'"),
        ("a\n\nb\nc\nd\ne", r"labels\.txt, line 2 is empty"),
        ("", "is empty"),
        ("a,1\nb,2\nc,3\nd,4\ne,5", r"has the columns 1 \('a', \.\.\.\), 2 .*labels=FILE:COLUMN"),
        ("a\nb\nc\nd\n\xff", "not text in UTF-8"),
    ],
)
def test_text_files_that_do_not_fit(tmp_path, x, text, message):
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "labels.txt").write_bytes(text.encode("latin1"))
    with pytest.raises(ValueError, match=message):
        embeddings.load(tmp_path / "x.npy", labels="labels.txt")


@pytest.mark.parametrize("labels", [np.zeros((5, 1), int), np.zeros(5), np.zeros(4, int)])
def test_arrays_that_are_no_labels(tmp_path, x, labels):
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "labels.npy", labels)
    message = (
        "must have a label for each" if labels.shape == (4,) else r"labels\.npy must hold integers or strings \[n\]"
    )
    with pytest.raises(ValueError, match=message):
        embeddings.load(tmp_path / "x.npy", labels="labels.npy")
