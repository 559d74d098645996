import numpy as np
import pytest

from jaxface.data import trials

ROWS = [
    ("ann/1.jpg", "ann/2.jpg", True, 2.5),
    ("ann/1.jpg", "bob/1.jpg", False, -1.0),
    ("bob/1.jpg", "cyd/7.jpg", False, 0.25),
]
FIRST, SECOND, SAME, SCORES = (list(column) for column in zip(*ROWS, strict=True))


@pytest.fixture
def written(tmp_path):
    def write(text, name="trials.txt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def lines(form):
    return "".join(form(a, b, same, score) + "\n" for a, b, same, score in ROWS)


WORD = {True: "target", False: "nontarget"}
FORMS = {
    "csv": ("a,b,same,cosine\n", lambda a, b, same, s: f"{a},{b},{int(same)},{s}"),
    "tsv in another order": ("score\ttarget\ttest\tenroll\n", lambda a, b, same, s: f"{s}\t{same}\t{b}\t{a}"),
    "semicolons": ("file1;file2;llr;label\n", lambda a, b, same, s: f"{a};{b};{s};{str(same).upper()}"),
    "voxceleb": ("", lambda a, b, same, s: f"{int(same)} {a} {b} {s}"),
    "nist": ("modelid,segmentid,targettype,x\n", lambda a, b, same, s: f"{a},{b},{WORD[same]},{s}"),
    "nist without a header": ("", lambda a, b, same, s: f"{a} {b} {WORD[same]} {s}"),
    "quotes and comments": ("# by hand\n\na,b,same,s\n", lambda a, b, same, s: f'"{a}","{b}",{same},{s}\n'),
    "byte order mark": ("\ufeffa,b,same,score\n", lambda a, b, same, s: f"{a},{b},{int(same)},{s}"),
    "windows": ("a,b,same,score\r\n", lambda a, b, same, s: f"{a},{b},{int(same)},{s}\r"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_trials(name, written):
    head, form = FORMS[name]
    found = trials.read(written(head + lines(form)))
    assert (list(found.first), list(found.second)) == (FIRST, SECOND)
    np.testing.assert_array_equal(found.is_same, SAME)
    (scores,) = found.scores.values()
    np.testing.assert_array_equal(scores, SCORES)


def test_pairs_of_lfw(written):
    found = trials.read(written("1\t2\nAnn_Lee\t1\t12\nBob\t3\t4\nAnn_Lee\t2\tBob\t1\nBob\t2\tCyd\t1\n", "pairs.txt"))
    assert found.first[0] == "Ann_Lee/Ann_Lee_0001.jpg"
    assert found.second == ("Ann_Lee/Ann_Lee_0012.jpg", "Bob/Bob_0004.jpg", "Bob/Bob_0001.jpg", "Cyd/Cyd_0001.jpg")
    assert found.is_same.tolist() == [True, True, False, False]
    assert trials.people(found) == (("Ann_Lee", "Bob", "Ann_Lee", "Bob"), ("Ann_Lee", "Bob", "Bob", "Cyd"))


def test_columns_that_are_named(written):
    path = written("x,y,z,w\nann,bob,0.5,no\nann,ann,1.5,yes\n")
    found = trials.read(path, columns={"a": "x", "b": "2", "same": "w"}, scores=["z"])
    assert (found.first, found.second) == (("ann", "ann"), ("bob", "ann"))
    assert (found.is_same.tolist(), found.scores["z"].tolist()) == ([False, True], [0.5, 1.5])


def test_several_systems_and_people(written):
    found = trials.read(written("same,one,two,person_a,person_b\n1,.5,-inf,7,7\n0,.25,1e3,7,8\n"))
    assert {name: values.tolist() for name, values in found.scores.items()} == {
        "one": [0.5, 0.25],
        "two": [-np.inf, 1e3],
    }
    assert trials.people(found) == (("7", "7"), ("7", "8"))
    assert found.first == ()


def test_labels_and_scores_without_a_header(written):
    found = trials.read(written("1 0.5\n0 0.25\n0 1\n"))
    assert found.is_same.tolist() == [True, False, False]
    assert {name: values.tolist() for name, values in found.scores.items()} == {"column 2": [0.5, 0.25, 1.0]}


def test_two_files_of_scores(written):
    genuine, impostor = written("score\n3\n2.5\n", "genuine.txt"), written("0\n-1\n0.5\n", "impostor.txt")
    found = trials.read_scores(genuine, impostor, name="mine")
    assert found.is_same.tolist() == [True, True, False, False, False]
    assert found.scores["mine"].tolist() == [3.0, 2.5, 0.0, -1.0, 0.5]
    with pytest.raises(ValueError, match=r"must hold one score a line; its columns are 1 \('1', ...\), 2 "):
        trials.read_scores(genuine, written("1 2\n3 4\n", "pairs"))


def test_scores_of_other_files_are_joined_by_name(written):
    known = trials.read(written("1 a b\n0 a c\n0 b c\n"))
    both = trials.with_scores(known, written("c a 3\nb c 2\na b 1\n", "s"), name="mine")
    both = trials.with_scores(both, written("7\n8\n9\n", "t"), name="theirs")
    assert {name: values.tolist() for name, values in both.scores.items()} == {"mine": [1, 3, 2], "theirs": [7, 8, 9]}
    for text, message in {
        "a b 1\nc a 3\n": r"lacks the score of 1 of 3 trials, the first \('b', 'c'\)",
        "a b 1\na b 2\nc a 3\nb c 1\n": r"scores the pair \('a', 'b'\) twice",
        "1\n2\n": "has 2 scores without names; they must be one a trial",
        "a b\na c\n": "must hold one column of scores; it has none",
        "a b 1.5 2\na c 1.5 2\n": "must hold one column of scores; it has column 3, column 4",
    }.items():
        with pytest.raises(ValueError, match=message):
            trials.with_scores(known, written(text, "s"), name="mine")
    ones = trials.with_scores(known, written("a b 1\na c 0\nb c 0\n", "s"), name="mine")
    assert ones.scores["mine"].tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="two systems are called 'mine'"):
        trials.with_scores(both, written("7\n8\n9\n", "t"), name="mine")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("1 ann/1.jpg ann/2.jpg\n0 ann/1.jpg bob/1.jpg\n", (("ann", "ann"), ("ann", "bob"))),
        ("1 id1/u1/1.wav id1/u2/2.wav\n0 id1/u1/1.wav id2/u1/3.wav\n", (("id1", "id1"), ("id1", "id2"))),
        ("1 Ann_0001.jpg Ann_0002.jpg\n0 Ann_0001.jpg Bo_X_0001.jpg\n", (("Ann", "Ann"), ("Ann", "Bo_X"))),
        ("1 x y\n0 x z\n", None),
        ("1 ann/1 bob/2\n0 ann/1 cyd/2\n", None),
        ("x y 1.5\nx z 2.5\n", None),
    ],
)
def test_people_from_names_of_files(rows, expected, written):
    assert trials.people(trials.read(written(rows))) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no trials: it has no line that is not empty"),
        ("a,b,same\n", "holds no trials below its header"),
        ("a,b,same\nx,y\n", r"row 2: 2 cells \(\['x', 'y'\]\), but the first row has 3. Is another delimiter needed"),
        ("a,a,same\nx,y,1\n", "has two columns of one name"),
        ("a,b,same\nx,y,maybe\n", "row 2: 'maybe' in the column 'same' does not say whether"),
        ("a,same,score\nx,1,2\n", r"has a column for 'a' \(a\) and none for 'b'; its columns are a \('x', ...\)"),
        ("x\ny\n", "holds neither pairs of names nor scores; its columns are 1"),
    ],
)
def test_refusals_say_what_was_found(text, message, written):
    with pytest.raises(ValueError, match=message):
        trials.read(written(text))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"truth": "same"}}, "a role in columns must be one of 'a', 'b', 'same', 'person_a', 'person_b'"),
        ({"columns": {"same": "sane"}}, "has no column 'sane'; it has a .* Did you mean 'same'"),
        ({"scores": ["9"]}, "has no column '9'"),
        ({"scores": ["same"], "columns": {"same": "same"}}, "the column 'same' cannot have two roles"),
        ({"scores": ["note"]}, "row 2: 'fine' in the column 'note' is no score. A comparison that failed scores -inf"),
        ({"scores": ["b"]}, "has a column for 'a'"),
    ],
)
def test_columns_that_do_not_fit(options, message, written):
    with pytest.raises(ValueError, match=message):
        trials.read(written("a,b,same,score,note\nx,y,1,0.5,fine\n"), **options)


def test_nan_is_no_score(written):
    with pytest.raises(ValueError, match="row 3: 'nan' in the column 's' is no score"):
        trials.read(written("same,s\n1,0.5\n0,nan\n"))


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(ValueError, match="is not text in UTF-8"):
        trials.read(tmp_path / "x")
