import numpy as np
import pytest

from jaxface.data import name_lists

NAMES = ("Ann", "Bob Ray", "Cec", 7)


def test_a_list_names_people(tmp_path):
    (tmp_path / "list.txt").write_text("\ufeffCec\n\n Bob Ray \nCec\n7\n", encoding="utf-8")
    np.testing.assert_array_equal(name_lists.load(tmp_path / "list.txt", NAMES), [1, 2, 3])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Ann\nBob\nDan", r"list\.txt names 2 people who are not in the data, the first 'Bob'.*Did you mean"),
        (b" \n\n", "is empty; expected a name a line"),
        (b"Ann\xff", "is not text in UTF-8"),
    ],
)
def test_lists_that_do_not_fit(tmp_path, content, message):
    (tmp_path / "list.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        name_lists.load(tmp_path / "list.txt", NAMES)
