import numpy as np
import pytest

from jaxface.features import maps
from tests.features import draws
from tests.features.draws import a_map
from tests.reference import features_reference as reference
from tests.tolerances import assert_close


@pytest.mark.parametrize(("input_dim", "num_features"), [(8, 8), (6, 20)])
def test_sorf_is_its_definition(input_dim, num_features):
    params = a_map("sorf", input_dim=input_dim, num_features=num_features)
    expected = reference.sorf_matrix(
        np.asarray(params.signs), np.asarray(params.scale), input_dim=input_dim, num_features=num_features
    )
    assert_close(maps.dense_matrix(params), expected)


def test_rows_of_sorf_are_orthogonal_and_of_one_length():
    v = draws.dense(a_map("sorf", input_dim=16, num_features=16, bandwidth=2.0))
    assert_close(v @ v.T, 16 / 4 * np.eye(16))
