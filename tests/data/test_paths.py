import pytest

from jaxface.data import paths


@pytest.mark.parametrize("name", ["../x.png", "a/../../x.png", "/etc/passwd"])
def test_names_that_leave_the_root(tmp_path, name):
    with pytest.raises(ValueError, match=r"list\.txt, line 3: '.*' leads outside the data root"):
        paths.inside(tmp_path, name, source="list.txt, line 3")


def test_absolute_names_are_refused_even_inside_the_root(tmp_path):
    with pytest.raises(ValueError, match="leads outside"):
        paths.inside(tmp_path, str(tmp_path / "a.png"), source="list")
    assert paths.inside(tmp_path, "a/../b.png", source="list") == tmp_path / "a/../b.png"


def test_natural_order_of_equal_numbers_is_settled_by_the_name():
    names = ["s10", "s2", "s02", "s", "2", "10a"]
    assert sorted(names, key=paths.natural_key) == ["2", "10a", "s", "s02", "s2", "s10"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "x.txt").write_text("old")

    def write(text, fail):
        with paths.replacing(tmp_path / "x.txt") as temporary:
            temporary.write_text(text)
            if fail:
                raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write("half", fail=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.txt", "old")]
    write("new", fail=False)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.txt", "new")]
