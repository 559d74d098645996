"""Slow, obvious versions of what jaxface.data does in whole-array steps."""

import itertools

import numpy as np


def all_pairs(ids):
    return [(i, j, ids[i] == ids[j]) for i, j in itertools.combinations(range(len(ids)), 2)]


def track_groups(positions, tracks, threshold, min_size, max_size, frames=None):
    """Walks through each track frame by frame, closing a group at a gap, a fast move, or when it is full."""
    groups = np.full(len(tracks), -1)
    number = 0
    for track in sorted(set(tracks) - {-1}):
        rows = [row for row in range(len(tracks)) if tracks[row] == track]
        if frames is not None:
            rows.sort(key=lambda row: frames[row])
        runs = [[rows[0]]]
        for before, row in itertools.pairwise(rows):
            gap = frames is not None and frames[row] != frames[before] + 1
            points = np.atleast_3d(positions)  # [n, d, 1] for vectors
            if positions.ndim == 3:
                moved = np.mean([np.hypot(*(a - b)) for a, b in zip(points[row], points[before], strict=True)])
            else:
                moved = np.sqrt(sum((positions[row] - positions[before]) ** 2))
            if gap or moved > threshold or len(runs[-1]) == max_size:
                runs.append([])
            runs[-1].append(row)
        for run in runs:
            if len(run) >= min_size:
                groups[run] = number
                number += 1
    return groups


def box_mean(image, size):
    """Mean over equal blocks, for sizes that divide."""
    height, width = size
    out = np.zeros((*size, *image.shape[2:]))
    for i in range(height):
        for j in range(width):
            rows = slice(i * image.shape[0] // height, (i + 1) * image.shape[0] // height)
            columns = slice(j * image.shape[1] // width, (j + 1) * image.shape[1] // width)
            out[i, j] = image[rows, columns].mean((0, 1))
    return out
