"""Faces in, arrays out: reading, protocols, groups, splits, synthetic data and streams, in NumPy on the host.

    images      one file -> float32 in [0, 1], bounded before decoding     read_image, load_images
    folders     one folder a person                                        scan, read, load
    orl         the ORL faces of AT&T Laboratories Cambridge               load
    lfw         Labeled Faces in the Wild and its protocol                 load, view1, view2, unrestricted_rows
    matlab      `fea`/`gnd` faces and two-view files                       load, load_views
    mat5        numbers of a MATLAB file of version 5 to 7, within limits  variables, value
    embeddings  vectors of other tools in the files they come in           load, save
    face_bin    image pairs in a `.bin`: LFW, CFP, AgeDB of insightface    scan, image, unpack
    datasets    Listing, LabeledImages, and selecting from them           take, take_people, people_with
    groups      partial equivalence groups: rows known to show one person  random_groups, track_groups
    pairs       pairs for verification                                     all_pairs, limited, load, save
    trials      pairs and scores of any system, from text files            read, read_scores, with_scores
    delimited   text files of columns                                      table
    vector_files    which reader takes a file of vectors                   read, sources
    vector_tables   vectors in CSV, TSV or other text                      read
    label_files     labels of vectors in a text file of their own          read, by_name
    kaldi           vectors of Kaldi: archives and lists                   read, read_scp
    unread_formats  formats that are not read, and how to convert them     refuse
    overlap     people on two sides of a test, refused                     refuse_shared_people, refuse_shared_rows
    name_lists  lists of people in text files                              load
    splits      who trains, chooses settings and tests; random splits      Split, few_shot, identity_disjoint, k_shot
    synthetic   data with known truth                                      gaussian_identities, rendered_faces,
                                                                           face_tracks
    rendering   a face drawn from numbers                                  render, landmarks
    patterns    photographs that a generator made, of many classes         patterns
    stream      data larger than memory in batches of one size             batches, grain_batches
    row_files   rows of a file by number, read and not mapped
    archives    arrays of a `.npz` file, whole within a limit or mapped    read, mapped
    storage     files on disk: nothing outside the data root               inside, replacing

Images are float32 `[n, h, w]` (or `[n, h, w, 3]`) in [0, 1]; a person is a dense int32 id with a name. Points are
(x, y) = (column, row) in pixels, crops (top, left, height, width), sizes (height, width). Randomness comes from an
explicit `numpy.random.Generator`, and draw i is the same however many are drawn.
"""

from collections.abc import Callable

from jaxface.data import (
    embeddings,
    face_bin,
    folders,
    groups,
    images,
    lfw,
    matlab,
    orl,
    overlap,
    pairs,
    splits,
    stream,
    synthetic,
)
from jaxface.data.datasets import LabeledImages, Listing, from_arrays, people_with, take, take_people

LOADERS: dict[str, Callable[..., LabeledImages]] = {  # the name in a config -> root and options -> LabeledImages
    "orl": orl.load,
    "folders": folders.load,
    "lfw": lfw.load,
    "matlab": matlab.load,
}

__all__ = [
    "LOADERS",
    "LabeledImages",
    "Listing",
    "embeddings",
    "face_bin",
    "folders",
    "from_arrays",
    "groups",
    "images",
    "lfw",
    "matlab",
    "orl",
    "overlap",
    "pairs",
    "people_with",
    "splits",
    "stream",
    "synthetic",
    "take",
    "take_people",
]
