"""Two processes of which one is killed at a random moment: the same command again must end as if nothing had happened.

    python -m tests.runtime.kills --count=20 --seed=0       20 kills; 1 when any ends otherwise
    python -m tests.runtime.kills --only=weak_labels:13     the kill of a line that said so
    python -m tests.runtime.kills --limits=3                how long wrong starts and lost processes take, three times

`JAXFACE_KILLS=20 pytest tests/runtime/test_kills.py` does the first; without the variable that test is skipped. The
studies are small variants of two real ones, and one with checkpoints and sums over processes. A kill is a function of
its seed: which process, and after which part of the time that a run takes without a kill. A process that is killed
before it has reported to process 0 is missed after two minutes only; the other one is then stopped after 30 seconds.
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from tests.runtime import smoke_runs, two_runs
from tests.two_processes import free_port

STUDIES = ("evaluate", "weak_labels", "segments")
SECONDS_TO_END = 30  # of the process that was not killed
_SEGMENTS = "from jaxface.runtime import launch; from tests.runtime import two_runs; launch.main(two_runs.run)"

Limit = Callable[["Clean"], float]


class Clean(NamedTuple):
    """A study that two processes have done without a kill."""

    study: str
    flags: tuple[str, ...]
    workdir: pathlib.Path
    seconds: float


class Ended(NamedTuple):
    """How a process ended: exit code, seconds, and the last sentence that it said."""

    code: int | None
    seconds: float
    sentence: str


def clean(study: str, folder: pathlib.Path) -> Clean:
    """The run to compare with."""
    workdir = folder / f"{study}-clean"
    flags = flags_of(study, folder)
    begin = time.monotonic()
    ended = wait(start(study, flags, [workdir] * 2), workdir, 600)
    if [each.code for each in ended] != [0, 0]:
        raise RuntimeError(f"{study} fails without a kill: {ended}")
    return Clean(study, flags, workdir, time.monotonic() - begin)


def flags_of(study: str, folder: pathlib.Path) -> tuple[str, ...]:
    """The smallest variant, with data that are made here."""
    if study == "evaluate":
        return tuple(smoke_runs.flags_of(study, folder))
    if study == "segments":
        (folder / "segments.py").write_text(two_runs.CONFIG)
        return (f"--config={folder / 'segments.py'}",)
    rng = np.random.default_rng(0)
    for person in range(6):
        (folder / "faces" / f"p{person}").mkdir(parents=True, exist_ok=True)
        base = rng.uniform(60, 190, (12, 10))
        for shot in range(4):
            pixels = np.clip(base + rng.normal(0, 12, base.shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "faces" / f"p{person}" / f"{shot}.png")
    return (
        "--config=configs/weak_labels.py:smoke", "--config.data.loader=folders", "--config.data.options.size=(12,10)",
        f"--config.data.root={folder / 'faces'}", "--config.num_train=3", "--config.group_sizes=(3,)",
        "--config.methods=('eigenfaces','np_per')", "--config.clustering.methods=('np_per',)",
        "--config.videos.sizes=()",
    )  # fmt: skip


def start(
    study: str, flags: Sequence[str], workdirs: Sequence[pathlib.Path], counts: Sequence[int] = (2, 2),
    addresses: Sequence[str] = (),
) -> list[subprocess.Popen[bytes]]:  # fmt: skip
    """Both processes; what each says goes to a file beside its folder."""
    program = ["-c", _SEGMENTS] if study == "segments" else ["-m", f"experiments.{study}"]
    addresses = addresses or [f"127.0.0.1:{free_port()}"] * 2
    started = []
    for place in range(2):
        command = [sys.executable, *program, *flags, f"--workdir={workdirs[place]}"]
        command += [f"--coordinator={addresses[place]}", f"--num_processes={counts[place]}", f"--process_id={place}"]
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "SCENARIO": "killed from outside"}
        with open(said(workdirs[place], place), "wb") as file:
            started.append(subprocess.Popen(command, cwd=smoke_runs.ROOT, stdout=file, stderr=file, env=environment))
    return started


def said(workdir: pathlib.Path, place: int) -> pathlib.Path:
    """The file with what a process said."""
    return pathlib.Path(f"{workdir}.{place}.log")


def wait(
    started: Sequence[subprocess.Popen[bytes]], workdir: pathlib.Path, seconds: float, places: Sequence[int] = (0, 1)
) -> list[Ended]:
    """How the processes ended; one that has not is stopped, and has the code None."""
    begin, found = time.monotonic(), {}
    while len(found) < len(started) and time.monotonic() < begin + seconds:
        for place, process in zip(places, started, strict=True):
            if place not in found and process.poll() is not None:
                found[place] = process.returncode, time.monotonic() - begin
        time.sleep(0.05)
    for place, process in zip(places, started, strict=True):
        if place not in found:
            process.terminate()
            process.wait()
            found[place] = None, time.monotonic() - begin
    return [Ended(*found[place], last_sentence(workdir, place)) for place in places]


def last_sentence(workdir: pathlib.Path, place: int) -> str:
    lines = said(workdir, place).read_text(errors="replace").strip().splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]


def kill(done: Clean, seed: int) -> list[str]:
    """One kill and the same command again: what is wrong, and a line that says what happened."""
    draw = random.Random(f"{done.study}:{seed}")
    victim, moment = draw.randrange(2), draw.uniform(0.1, 1.0) * done.seconds
    workdir = done.workdir.with_name(f"{done.study}-{seed}")
    both = start(done.study, done.flags, [workdir] * 2)
    time.sleep(moment)
    both[victim].send_signal(signal.SIGKILL)
    both[victim].wait()
    other = wait([both[1 - victim]], workdir, SECONDS_TO_END, [1 - victim])[0]
    wrong = [] if _is_right(other, workdir, 1 - victim) else [f"the other process did not end with a sentence: {other}"]
    kept = len(list((workdir / "stages").glob("*.npz")))
    again = wait(start(done.study, done.flags, [workdir] * 2), workdir, 600)
    if [each.code for each in again] != [0, 0]:
        wrong.append(f"the same command failed: {again}")
    else:
        wrong += smoke_runs.differing(done.workdir, workdir)
    print(
        f"{done.study}:{seed}: process {victim} killed after {moment:.1f} of {done.seconds:.1f} s, {kept} stages kept; "
        f"the other ended with {other.code} in {other.seconds:.1f} s ({other.sentence[:60]}); "
        f"again: {'; '.join(wrong) or 'the same'}",
        flush=True,
    )
    return wrong


def _is_right(other: Ended, workdir: pathlib.Path, place: int) -> bool:
    """A sentence, or success where all was done; before the two have met, it may wait."""
    if other.code is None:
        return f"process {place} of 2" not in said(workdir, place).read_text(errors="replace")
    return (workdir / "results.json").exists() if other.code == 0 else other.sentence.startswith("error: ")


def unshared(done: Clean) -> float:
    """Each process has a folder of its own."""
    workdirs = [done.workdir.with_name(f"unshared-{place}") for place in range(2)]
    both = start(done.study, done.flags, workdirs)
    ended = [wait([both[place]], workdirs[place], 60, [place])[0] for place in range(2)]
    return _longest(ended, "--workdir must be a folder that all processes share")


def other_address(done: Clean) -> float:
    """Process 1 is told of an address where nobody listens; process 0 goes on waiting."""
    workdir = done.workdir.with_name("address")
    both = start(done.study, done.flags, [workdir] * 2, addresses=[f"127.0.0.1:{free_port()}" for _ in range(2)])
    ended = wait(both[1:], workdir, 60, [1])
    both[0].kill()
    both[0].wait()
    return _longest(ended, "does not answer within")


def more_expected(done: Clean) -> float:
    """Process 0 is told of three processes, the other of two."""
    workdir = done.workdir.with_name("more")
    return _longest(wait(start(done.study, done.flags, [workdir] * 2, (3, 2)), workdir, 60), "must be the same in all")


def fewer_expected(done: Clean) -> float:
    """Process 0 is told of two processes, the other of three."""
    workdir = done.workdir.with_name("fewer")
    return _longest(wait(start(done.study, done.flags, [workdir] * 2, (2, 3)), workdir, 60), "must be the same in all")


def lost(done: Clean, victim: int) -> float:
    """A process is killed in a stage; the seconds from there."""
    workdir = done.workdir.with_name(f"lost-{victim}-{time.monotonic_ns()}")
    both = start(done.study, done.flags, [workdir] * 2)
    while not said(workdir, 0).exists() or ": started" not in said(workdir, 0).read_text(errors="replace"):
        time.sleep(0.05)
    both[victim].kill()
    both[victim].wait()
    return _longest(wait([both[1 - victim]], workdir, 60, [1 - victim]), "error: ")


def lost_first(done: Clean) -> float:
    """Process 0 is killed."""
    return lost(done, 0)


def lost_second(done: Clean) -> float:
    """Process 1 is killed."""
    return lost(done, 1)


LIMITS: dict[Limit, float] = {
    unshared: 10, other_address: 10, more_expected: 10, fewer_expected: 10, lost_first: 30, lost_second: 30,
}  # fmt: skip


def _longest(ended: Sequence[Ended], sentence: str) -> float:
    for each in ended:
        if each.code != 1 or sentence not in each.sentence:
            raise RuntimeError(f"a process did not end with {sentence!r}: {each}")
    return max(each.seconds for each in ended)


def _timed(done: Clean, times: int) -> bool:
    right = True
    for limit, at_most in LIMITS.items():
        seconds = [limit(done) for _ in range(times)]
        right &= max(seconds) <= at_most
        name = limit.__name__.replace("_", " ")
        print(f"{name:15s} at most {at_most:2.0f} s:", *(f"{each:.1f}" for each in seconds), flush=True)
    return right


def main(argv: Sequence[str] | None = None) -> int:
    """See the top of this file."""
    parser = argparse.ArgumentParser(prog="python -m tests.runtime.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20, help="kills")
    parser.add_argument("--seed", type=int, default=0, help="of the first kill; the others follow")
    parser.add_argument("--only", default="", help="kills by name, with commas between: weak_labels:13")
    parser.add_argument("--limits", type=int, default=0, help="times of each wrong start, in the place of kills")
    settings = parser.parse_args(argv)
    numbers = range(settings.seed, settings.seed + settings.count)
    names = settings.only.split(",") if settings.only else [f"{STUDIES[n % len(STUDIES)]}:{n}" for n in numbers]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if settings.limits:
            return int(not _timed(clean("weak_labels", folder), settings.limits))
        done = {study: clean(study, folder) for study in dict.fromkeys(name.split(":")[0] for name in names)}
        wrong = [name for name in names if kill(done[name.split(":")[0]], int(name.split(":")[1]))]
    print(f"{len(names)} kills, {len(wrong)} with a wrong end {' '.join(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
