"""Lists of people in text files, a name a line: who fits a model, and who tests it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxface.core import messages
from jaxface.data import storage
from jaxface.data.datasets import Name

__all__ = ["load"]


def load(path: str | Path, names: Sequence[Name]) -> np.ndarray:
    """The ids `[k]`, ascending, of the people that a file lists; `names[id]` is who they are.

    Empty lines do not count and a name may stand there twice; a name that is not in the data is an error.
    """
    path = storage.existing_file(path, "A list of people")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{messages.printable(path)} is not text in UTF-8 ({error}). Save it as such.") from error
    id_of = {str(name): k for k, name in enumerate(names)}
    listed = [line.strip() for line in lines if line.strip()]
    unknown = [name for name in listed if name not in id_of]
    if unknown:
        raise ValueError(
            f"{messages.printable(path)} names {len(unknown)} people who are not in the data, the first "
            f"{messages.printable(unknown[0])!r}.{messages.did_you_mean(unknown[0], id_of)}"
        )
    if not listed:
        raise ValueError(f"{messages.printable(path)} is empty; expected a name a line.")
    return np.unique([id_of[name] for name in listed])
