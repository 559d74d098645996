"""Files of vectors that are refused with a command that converts them."""

import pytest

from jaxface.data import embeddings


@pytest.mark.parametrize(
    ("name", "start", "message"),
    [
        ("x.parquet", b"", "a Parquet table.*read_parquet"),
        ("x.data", b"PAR1", "a Parquet table"),
        ("x.feather", b"", "read_feather"),
        ("x.h5", b"", "an HDF5 file.*h5py"),
        ("x", b"\x89HDF\r\n", "an HDF5 file"),
        ("x.mat", b"MATLAB 5.0 MAT-file", "a MATLAB file.*loadmat"),
        ("x.pkl", b"\x80\x04", "a pickle, which can run code"),
        ("x.data", b"\x80\x04", "a pickle"),
        ("x.pt", b"PK\x03\x04", "a file of PyTorch.*weights_only=True"),
        ("x.zip", b"PK\x03\x04__archive/data.pkl", "a file of PyTorch"),
        ("x.safetensors", b"", "safetensors.numpy.load_file"),
        ("x.json", b"{}", "JSON.*read_json"),
        ("x.jsonl", b"{}", "lines=True"),
        ("x.xlsx", b"PK\x03\x04", "a spreadsheet"),
        ("x.bin", b"\x00\x01\x02", "a file without a header.*fromfile"),
        ("x.bin", b"\x80\x04", "holds images, not vectors.*experiments.embed"),
    ],
)
def test_formats_that_are_not_read(tmp_path, name, start, message):
    (tmp_path / name).write_bytes(start)
    with pytest.raises(ValueError, match=message):
        embeddings.load(tmp_path / name)
