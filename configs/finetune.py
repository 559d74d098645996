"""Fine-tuning a Joint Bayes model through its differentiable score.

    python -m experiments.finetune --config=configs/finetune.py --workdir=runs/finetune

The study of `configs/verify.py` with 10 target people to train on; about a minute on two cores. Expected EER: 14.7 % as
EM leaves it, 18.4 % fine-tuned to the last step, 15.1 % when held-out people choose the step, each +- 1.
`:embeddings` takes two files of vectors, `--config.data.root=A.npz --config.target.root=B.npz`. With SFace and two
halves of the people of LFW nothing is left to gain: an EER of 0.3 % before and after.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = common.orl_faces(height=56, width=46)  # the source
    config.people = common.people()  # of two sets; a simulated camera takes all
    config.update(common.camera_change())
    config.target_people = (10,)
    config.start = "transfer, w by log-likelihood"  # or another method of `experiments.verify`
    config.loss = "cllr"  # cllr, or pairwise_logistic at a prior of 0.1
    config.rank = 20  # of T_mu
    config.num_segments = 10  # held-out people choose after which of them to stop
    config.num_steps = 3  # of L-BFGS in a segment
    return common.variant(config, variant, {"smoke": _smoke, "embeddings": _embeddings})


def _smoke(config: ConfigDict) -> None:
    config.num_splits = 2
    config.num_iters = 5
    config.weights = (0.0, 0.5, 1.0)
    config.num_segments = 2


def _embeddings(config: ConfigDict) -> None:
    """Two files of vectors of one network, of different people."""
    common.embedded_domains(config)
    config.target_people = (20,)
    config.rank = None
