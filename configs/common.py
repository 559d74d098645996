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
    config.runtime = ConfigDict({"x64": x64})  # float64 where ranks and small eigenvalues decide
    return config


def orl_faces(*, height: int, width: int) -> ConfigDict:
    """The ORL faces, which the extra `faces` brings; any other set by its loader, root and options."""
    data = ConfigDict()
    data.loader = "orl"  # orl, folders (one folder a person), lfw, matlab (fea/gnd file)
    data.root = placeholder(str)  # where your copy is; None takes the faces of the extra
    data.options = ConfigDict({"size": (height, width)})  # keyword arguments of the loader
    return data


def variant(config: ConfigDict, name: str | None, changes: Mapping[str, Change]) -> ConfigDict:
    """Applies the variant named after the colon; none is `default`."""
    name = name or "default"
    known = {"default": _nothing, **changes}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown variant {name!r}; the variants are {', '.join(known)}.{hint}")
    known[name](config)
    return config.lock()


def _nothing(config: ConfigDict) -> None:
    del config
