"""What every config shares: the runtime fields, and variants that change values but never keys."""

import difflib
from collections.abc import Callable, Mapping

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

Change = Callable[[ConfigDict], None]


def base(*, x64: bool) -> ConfigDict:
    """A config with the fields that the launcher reads."""
    config = ConfigDict()
    config.seed = 0
    config.runtime = ConfigDict()
    config.runtime.x64 = x64  # float64 where ranks and small eigenvalues decide
    config.runtime.quick_compile = False  # half the time to compile, slower programs: for runs of many small ones
    config.runtime.distributed = "off"  # auto: the processes that SLURM, Open MPI, Kubernetes or a TPU started
    return config


def orl_faces(*, height: int, width: int) -> ConfigDict:
    """The ORL faces, which the extra `faces` brings; any other set by its loader, root and options."""
    data = ConfigDict()
    data.loader = "orl"  # orl, folders (one folder a person), lfw, matlab (fea/gnd file); of vectors: embeddings
    data.root = placeholder(str)  # where your copy is; None takes the faces of the extra
    data.options = options_of_vectors()  # keyword arguments of the loader
    data.options.size = (height, width)
    return data


def options_of_vectors() -> ConfigDict:
    """How `loader = "embeddings"` reads a file of vectors, where the file does not tell; None where it does."""
    options = ConfigDict()
    options.features = placeholder(str)  # an array of an .npz; FIRST:LAST, the columns of a table
    options.labels = placeholder(str)  # an array, a column, or a text file: FILE or FILE:COLUMN; Kaldi's utt2spk
    options.files = placeholder(str)  # an array or a column with names of files
    return options


def people() -> ConfigDict:
    """Who of the set takes part."""
    return ConfigDict({"min_images": 1, "max_images": placeholder(int)})  # of a person; None takes all of them


def embedded(config: ConfigDict) -> None:
    """Vectors of a network in `config.data`, a file of `experiments.embed` or of another tool, with all dimensions."""
    config.data.loader = "embeddings"
    config.data.options = options_of_vectors()
    config.image_steps = ()


def camera_change() -> ConfigDict:
    """The fields of a transfer study from faces to the same kind of faces seen by another camera."""
    study = ConfigDict()
    study.target = ConfigDict()
    study.target.loader = placeholder(str)  # a set of other people; camera: the same faces by a simulated camera (ORL)
    study.target.root = placeholder(str)
    study.target.options = options_of_vectors()
    study.target.options.size = (56, 46)
    study.camera = ConfigDict({"size": 12, "noise": 40.0})  # pixels a side, grey levels of 255
    study.num_splits = 20
    study.source_people = 16  # of the one set, when the target is simulated
    study.target_people = (2, 5, 10)  # to train on
    study.calibration_people = 4  # choose w and calibrate; count in every method's budget
    study.test_people = 10
    study.max_images = 10  # of a person, to calibrate and test: nobody's pairs decide alone
    study.image_steps = ()  # none: the grey values themselves
    study.num_components = 20  # PCA of the source; None keeps all dimensions
    study.length_normalize = False
    study.num_iters = 30
    study.weights = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)  # w = lambda / (1 + lambda)
    return study


def embedded_domains(config: ConfigDict) -> None:
    """Two files of vectors of one network, of different people: `--config.data.root` and `--config.target.root`."""
    embedded(config)
    config.target.loader = "embeddings"
    config.target.options = options_of_vectors()
    config.people.min_images = 2
    config.people.max_images = 20
    config.num_components = None
    config.target_people = (5, 20, 80)
    config.calibration_people = 40
    config.test_people = 100


def variant(config: ConfigDict, name: str | None, changes: Mapping[str, Change]) -> ConfigDict:
    """Applies the variant named after the colon; none is `default`."""
    name = name or "default"
    known = {"default": _nothing, **changes}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown variant {name!r}; the variants are {', '.join(known)}.{hint}")
    known[name](config)
    if name == "smoke":
        config.runtime.quick_compile = True
    return config.lock()


def _nothing(config: ConfigDict) -> None:
    del config
