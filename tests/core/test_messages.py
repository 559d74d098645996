import os

import numpy as np

from jaxface.core import messages


def test_values_are_named_by_type_and_shape():
    assert messages.describe(np.zeros((2, 3), np.float32)) == "an array of dtype float32 and shape (2, 3)"
    assert messages.describe("abc") == "'abc' of type str"


def test_only_a_near_word_is_suggested():
    assert messages.did_you_mean("gausian", ["gaussian", "linear"]) == " Did you mean 'gaussian'?"
    assert messages.did_you_mean("zzz", ["gaussian", "linear"]) == ""


def test_texts_from_outside_are_printed_in_one_line_without_codes():
    assert messages.printable("Zoë 東京.png") == "Zoë 東京.png"
    assert messages.printable("a\nb\x1b[2J\x9b\u202egnp") == "a\\nb\\x1b[2J\\x9b\\u202egnp"
    assert messages.printable(os.fsdecode(b"caf\xe9.png")) == "caf\\xe9.png"
    assert messages.printable(3) == "3"
    assert messages.printable_lines("a\n\x1bb") == "a\n\\x1bb"
