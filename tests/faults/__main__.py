"""Many faults, or one of them again.

python -m tests.faults --count=3000 --seed=1      # a tally by kind and outcome; 1 when any is wrong
python -m tests.faults --only=files:1234          # the fault of a line that said so
"""

import argparse
import collections
import faulthandler
import logging
import pathlib
import sys
import time

import absl.logging

from tests import conftest  # precision, threads and the compiled programs of the tests
from tests.faults import generate, verdict


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="which")
    parser.add_argument("--only", default="", help="one of them, or several with commas between: files:1234,numbers:7")
    parser.add_argument("--kinds", default=",".join(generate.KINDS), help="files, processes, numbers")
    settings = parser.parse_args()
    logging.disable(logging.CRITICAL)
    absl.logging.set_verbosity(absl.logging.FATAL)
    if settings.only:
        faults = [generate.named(name) for name in settings.only.split(",")]
    else:
        faults = generate.many(settings.count, settings.seed, settings.kinds.split(","))
    outcomes = list(_acted_out(faults, is_told=bool(settings.only)))
    _print_tally(outcomes)
    return int(any(not outcome.is_right for outcome in outcomes))


def _acted_out(faults: list[verdict.Fault], *, is_told: bool):
    begin = last = time.monotonic()
    for done, fault in enumerate(faults, 1):
        faulthandler.dump_traceback_later(3 * verdict.SECONDS, exit=True)  # a hang that no signal reaches
        outcome = verdict.run(fault)
        if is_told or not outcome.is_right:
            _print(outcome)
        if time.monotonic() - last > 20:
            last = time.monotonic()
            print(f"{done} of {len(faults)} faults in {last - begin:.0f} s", file=sys.stderr, flush=True)
        conftest.bound_memory()
        yield outcome
    faulthandler.cancel_dump_traceback_later()


def _print(outcome: verdict.Outcome) -> None:
    text = " ".join(outcome.text.split())[:600]
    print(f"{outcome.word}: {outcome.fault.what}\n    {text}\n    make faults ONLY={outcome.fault.name}", flush=True)


def _print_tally(outcomes: list[verdict.Outcome]) -> None:
    tally = collections.Counter((outcome.fault.name.partition(":")[0], outcome.word) for outcome in outcomes)
    words = list(dict.fromkeys([*verdict.OUTCOMES, *(outcome.word for outcome in outcomes)]))
    kinds = sorted({kind for kind, _ in tally})
    width = max(map(len, words)) + 2
    print(" " * 12 + "".join(word.rjust(width) for word in words) + "all".rjust(width))
    for kind in kinds:
        row = [tally[kind, word] for word in words]
        print(kind.ljust(12) + "".join(str(n).rjust(width) for n in (*row, sum(row))))
    wrong = sum(not outcome.is_right for outcome in outcomes)
    print(f"{len(outcomes)} faults, {wrong} with a wrong outcome")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
    sys.exit(main())
