"""Files of vectors that are not read: what they are, by their first bytes or their suffix, and how to convert them.

refuse   raises ValueError with the format and a command of one line
"""

from pathlib import Path

from jaxface.core import messages

__all__ = []

_PANDAS = "python -c \"import pandas; pandas.{reader}('IN').to_csv('OUT.csv', index=False)\""
_SAVEZ = "python -c \"{load}; numpy.savez('OUT.npz', features=d['FEATURES'], labels=d['LABELS'])\""
_PICKLE = (
    "a pickle, which can run code when it is loaded (convert it only if you trust who made it)",
    _SAVEZ.format(load="import pickle, numpy; d = pickle.load(open('IN', 'rb'))"),
)
_TORCH = (
    "a file of PyTorch",
    _SAVEZ.format(
        load="import torch, numpy; d = {k: numpy.asarray(v) for k, v in torch.load('IN', weights_only=True).items()}"
    ),
)
_HDF5 = "an HDF5 file", _SAVEZ.format(load="import h5py, numpy; h = h5py.File('IN'); d = {k: h[k][()] for k in h}")
_PARQUET = "a Parquet table", _PANDAS.format(reader="read_parquet")
_FEATHER = "a Feather or Arrow table", _PANDAS.format(reader="read_feather")
_MATLAB = (
    "a MATLAB file",
    _SAVEZ.format(load="import scipy.io, numpy; d = {k: numpy.squeeze(v) for k, v in scipy.io.loadmat('IN').items()}"),
)
_SAFETENSORS = (
    "a file of safetensors",
    _SAVEZ.format(load="import safetensors.numpy, numpy; d = safetensors.numpy.load_file('IN')"),
)
_JSON = "JSON", _PANDAS.format(reader="read_json")
_JSON_LINES = "JSON, one object a line", _PANDAS.format(reader="read_json").replace("'IN'", "'IN', lines=True")
_EXCEL = "a spreadsheet", _PANDAS.format(reader="read_excel")
_NUMBERS = (
    "a file without a header",
    ("python -c \"import numpy; numpy.save('OUT.npy', numpy.fromfile('IN', 'float32').reshape(-1, DIMENSIONS))\""),
)

_BY_START = {
    b"PAR1": _PARQUET,
    b"ARROW1": _FEATHER,
    b"FEA1": _FEATHER,
    b"\x89HDF": _HDF5,
    b"MATLAB 7.3": _HDF5,
    b"MATLAB 5": _MATLAB,
}
_BY_SUFFIX = {
    "parquet": _PARQUET,
    "feather arrow": _FEATHER,
    "h5 hdf5 hdf": _HDF5,
    "mat": _MATLAB,
    "pkl pickle p joblib": _PICKLE,
    "pt pth ckpt": _TORCH,
    "safetensors": _SAFETENSORS,
    "json": _JSON,
    "jsonl ndjson": _JSON_LINES,
    "xlsx xls ods": _EXCEL,
    "f32 dat raw vec fvecs": _NUMBERS,
}
_KNOWN = {f".{suffix}": what for suffixes, what in _BY_SUFFIX.items() for suffix in suffixes.split()}
READ = ".npz, .npy with a file of labels, CSV or TSV, and Kaldi's .ark and .scp"


def refuse(path: Path, start: bytes) -> None:
    """Raises ValueError about a file in a format that is known and not read; `start` is its first bytes."""
    if path.suffix.lower() == ".bin" and start.startswith(b"\x80"):
        raise ValueError(
            f"{messages.printable(path)} holds images, not vectors. Embed them first: python -m experiments.embed "
            f"--config=configs/embed.py:aligned --config.data.root={messages.printable(path)} --workdir=runs/embedded; "
            "then take runs/embedded/embeddings.npz."
        )
    found = next((what for magic, what in _BY_START.items() if start.startswith(magic)), None)
    found = found or _KNOWN.get(path.suffix.lower()) or (_PICKLE if start.startswith(b"\x80") else None)
    if found is None and start.startswith(b"PK") and b"/data.pkl" in start:
        found = _TORCH
    if found is None and b"\0" in start and not start.startswith(b"PK"):
        found = _NUMBERS
    if found is not None:
        what, command = found
        raise ValueError(
            f"{messages.printable(path)} is {what}; vectors are read from {READ}. Convert it where you trust it, with "
            f"the names that your file has: {command}"
        )
