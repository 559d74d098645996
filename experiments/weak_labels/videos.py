"""Tables and figures of the study of videos."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.weak_labels.methods import METHODS
from experiments.weak_labels.tracks import Filmed
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, percent_spread

BySize = Mapping[int, Mapping[str, np.ndarray]]  # frames of a group, then by the method


def table(config: ConfigDict, arrays: BySize) -> Table:
    """Error of every method with groups of every size."""
    rows: list[tuple[Cell, ...]] = [
        (METHODS[name].title, *(percent_spread(found[name]) for found in arrays.values()))
        for name in config.videos.methods
    ]
    what = "Identification error %"
    if config.videos.root is None:
        what += f", mean ± standard deviation over {config.videos.num_draws} sets of videos"
    return Table(("method", *(f"groups of {size}" for size in arrays)), rows, what)


def section(config: ConfigDict, arrays: BySize, pictures: np.ndarray, own: Filmed | None) -> Section:
    """Figures 5 and 6, on simulated videos or on one's own."""
    study = config.videos
    sizes = list(arrays)
    lines = [
        Curve(METHODS[name].title, sizes, [100 * arrays[size][name].mean() for size in sizes]) for name in study.methods
    ]
    figure = figures.curves(lines, x_label="frames in a group", y_label="identification error %", title="Videos")
    which = f"Mean over {study.num_draws} sets of videos." if own is None else "One set of videos."
    return Section(
        "Groups cut from videos",
        (
            _in_words(config, own),
            sheets.sheet(
                "tracks.png",
                pictures,
                row_labels=[f"person {k + 1}" for k in range(len(pictures))],
                column_labels=["frame", *("warped" if k == 0 else "" for k in range(pictures.shape[1] - 1))],
                title="A group of each person",
                caption=f"The first frame of a group, then faces of the group in time, warped to {study.size} x "
                f"{study.size} pixels by thin-plate splines.",
            ),
            Picture("videos.svg", figures.to_svg(figure), which),
            table(config, arrays),
        ),
    )


def _in_words(config: ConfigDict, own: Filmed | None) -> str:
    """What videos these are."""
    if own is None:
        return (
            f"{config.videos.num_people} simulated faces drift, turn and talk in videos, and sometimes jump. The "
            "frames between two jumps are a group, up to a largest number. Training and test frames come from "
            "different videos."
        )
    num_people, num_videos = len(np.unique(own.ids)), len(np.unique(own.tracks))
    return (
        f"{num_people} people in {num_videos} videos: {int(own.is_training.sum()):,} frames to train, "
        f"{int(own.is_test.sum()):,} of other videos to test; {int(own.num_without):,} frames without a face are left "
        "out. Consecutive frames are a group, up to a largest number, while the face moves little."
    )
