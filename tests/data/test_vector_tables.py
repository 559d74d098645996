"""Vectors in CSV and TSV."""

import numpy as np
import pytest

from jaxface.data import embeddings

X = np.array([[0.5, 1.0, -2.0], [1e-3, 2.0, 3.5], [4.0, 0.25, 6.0]])
WHO = ("ann", "bob", "ann")


def load(tmp_path, text, **options):
    (tmp_path / "x.csv").write_text(text, newline="", encoding="utf-8")
    return embeddings.load(tmp_path / "x.csv", **options)


def rows(mark=",", *, before=(), after=WHO):
    lines = []
    for k, numbers in enumerate(X.tolist()):
        words = [column[k] for column in (before,) if column]
        lines.append(mark.join([*words, *map(str, numbers), *([after[k]] if after else [])]))
    return lines


def check(found, files=()):
    np.testing.assert_array_equal(found.features, X)
    assert [found.names[k] for k in found.ids] == list(WHO)
    assert found.files == files


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(rows()),
        "\n".join(["f0,f1,f2,label", *rows()]),
        "\ufeff" + "\r\n".join(["f0;f1;f2;label", "", *rows(";"), "", ""]),
        "\n".join(["0\t1\t2\twho", *rows("\t")]),
        "\n".join([" ".join(row.split(",")) for row in rows()]),
        "\n".join(["e1,e2,e3,Person", *(row.replace("ann", '"ann"') for row in rows())]),
        "\n".join([",0,1,2,label", *(f"{k},{row}" for k, row in enumerate(rows()))]),
        "\n".join(["0,1,2,label", *rows()]),
    ],
)
def test_forms(tmp_path, text):
    check(load(tmp_path, text))


def test_files_and_cells_with_commas(tmp_path):
    names = ("a, b.jpg", "c.jpg", 'd "e".jpg')
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    check(load(tmp_path, "\n".join(["path,f0,f1,f2,label", *rows(before=quoted)])), names)
    options = {"files": "1", "labels": "5", "features": "2:4"}
    check(load(tmp_path, "\n".join(rows(before=quoted)), **options), names)


def test_columns_are_named_where_they_do_not_tell(tmp_path):
    text = "\n".join(["age,v1,v2,v3,name,town", *(f"30,{row},x" for row in rows())])
    with pytest.raises(
        ValueError, match=r"which columns are the vector\? It has 'age' \('30', \.\.\.\), 'v1' .*FIRST:LAST"
    ):
        load(tmp_path, text)
    check(load(tmp_path, text, features="v1:v3", labels="name"))
    with pytest.raises(ValueError, match="features must be FIRST:LAST, the first column before the last"):
        load(tmp_path, text, features="v3:v1", labels="name")
    with pytest.raises(ValueError, match=r"no column 'nme'.*Did you mean 'name'"):
        load(tmp_path, text, features="v1:v3", labels="nme")
    with pytest.raises(ValueError, match=r"has no labels: its columns are 'age' .*labels=NAME"):
        load(tmp_path, text, features="v1:v3")
    with pytest.raises(ValueError, match="whole numbers in column 4 only"):
        load(tmp_path, "\n".join(rows(after="010")))
    numbered = load(tmp_path, "\n".join(rows(after="010")), features="1:3", labels="4")
    assert (numbered.ids.tolist(), numbered.names) == ([0, 1, 0], ("0", "1"))


def test_labels_in_another_file(tmp_path):
    (tmp_path / "who.txt").write_text("\n".join(WHO))
    check(load(tmp_path, "\n".join(rows(after=())), labels="who.txt"))
    assert load(tmp_path, "\n".join(rows(after=())), min_people=0).names == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no vectors"),
        ("f0,f1,label\n", "holds no vectors"),
        ("f0,f1,label\n1,2,ann\n1,2\n", "row 3: 2 cells, but the first row has 3"),
        ("f0,f1,label\n1,2,ann\n1,x,bob\n", "row 3: 'x' in the column 'f1' is no number"),
        ("f0,f1,label\n1,x,ann\n1,2,bob\n", "row 2: 'x' in the column 'f1' is no number"),
        ("f0,f1,label\n" + 30 * "1,2,ann\n" + "1,2_0,bob\n", "row 32: '2_0' in the column 'f1' is no number"),
        ("f0,f1,label\n" + 30 * "1,2,ann\n" + "1,,bob\n", "row 32: '' in the column 'f1' is no number"),
        ("f0;f1;label\n" + 30 * "1;2;ann\n" + "1;0,5;bob\n", "row 32: '0,5' in the column 'f1' is no number"),
        ("f0,f1,label\n1,2,ann\n1,nan,bob\n", r"features of .*x\.csv must be finite; 1 of 4"),
        ("f0,f1,label\n1,2,ann\n1,3,\n", "1 rows have an empty label"),
        ("f0,f1,label\n1,2,ann\n1,3,\udcff\n", "not text in UTF-8"),
    ],
)
def test_refusals(tmp_path, text, message):
    (tmp_path / "x.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=message):
        embeddings.load(tmp_path / "x.csv")
