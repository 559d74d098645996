"""From a kind and a seed to a fault: `files:1234` is the same fault whoever asks, and whenever."""

import zlib
from collections.abc import Sequence

import numpy as np

from tests.faults import files, numbers, processes
from tests.faults.verdict import Fault

KINDS = {"files": 0.55, "processes": 0.1, "numbers": 0.35}  # and their part of a sample


def named(name: str) -> Fault:
    """The fault of a name such as `files:1234`."""
    kind, _, number = name.partition(":")
    if kind not in KINDS or not number.isdecimal():
        raise ValueError(f"a fault is {', '.join(f'{kind}:NUMBER' for kind in KINDS)}; got {name!r}.")
    rng = np.random.default_rng([zlib.crc32(kind.encode()), int(number)])
    if kind == "numbers":
        what, act, group = numbers.draw(rng)
    else:
        what, act = (files if kind == "files" else processes).draw(rng)
        group = ""
    return Fault(name, what, act, f"{kind} {group}")


def many(count: int, seed: int, kinds: Sequence[str] = tuple(KINDS)) -> list[Fault]:
    """A seeded sample; faults that share compiled programs stand together."""
    first = 1_000_000 * seed
    total = sum(KINDS[kind] for kind in kinds)
    sizes = {kind: round(count * KINDS[kind] / total) for kind in kinds}
    faults = [named(f"{kind}:{first + index}") for kind in kinds for index in range(sizes[kind])]
    return sorted(faults, key=lambda fault: fault.group)
