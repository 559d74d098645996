"""Runs the benchmarks and writes RESULTS.md, results.svg and results.json: `python -m benchmarks.run --help`."""

import argparse
import dataclasses
import os
import pathlib
import sys
from collections.abc import Sequence

from benchmarks import (
    dictionaries,
    ensembles,
    evaluation,
    features,
    foundation,
    gallery,
    joint_bayes,
    measure,
    memory,
    mixtures,
    people,
    report,
    rows,
    sparse,
    startup,
    streaming,
    subspaces,
)
from benchmarks.rows import Row
from jaxface.runtime import resources

# One module of rows a line; a new file of rows is added here.
GROUPS = (
    foundation, startup, joint_bayes, streaming, dictionaries, gallery, subspaces, ensembles, features, mixtures,
    sparse, people, evaluation,
)  # fmt: skip

ROWS: tuple[Row, ...] = tuple(row for group in GROUPS for row in group.ROWS)
FEWEST_REPEATS = 7


def main(argv: Sequence[str] | None = None, *, all_rows: tuple[Row, ...] = ROWS) -> int:
    """Runs the rows asked for; 1 when one of them gave no valid figure, 2 when the command was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument(
        "--rows", default="", help="such as F1,F5; all rows when left out, the others keep their results"
    )
    parser.add_argument(
        "--repeats", type=int, default=FEWEST_REPEATS, help="timings of each side, at least %(default)s"
    )
    parser.add_argument("--check", action="store_true", help="only compare the results of both sides; writes nothing")
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory of both sides")
    parser.add_argument(
        "--folder", type=pathlib.Path, default=pathlib.Path(__file__).parent, help="where results are kept"
    )
    arguments = parser.parse_args(argv)
    if arguments.repeats < FEWEST_REPEATS:
        parser.error(f"--repeats must be at least {FEWEST_REPEATS}; got {arguments.repeats}.")
    try:
        chosen = rows.selected(all_rows, arguments.rows) if arguments.rows else list(all_rows)
    except ValueError as error:
        parser.error(str(error))
    resources.keep_freed_memory()
    if arguments.check:
        return _check(chosen)
    return _measure(chosen, all_rows, arguments)


def _check(chosen: list[Row]) -> int:
    failed = 0
    for row in chosen:
        try:
            print(f"{row.name}: {measure.check(row)}", flush=True)
        except Exception as error:
            failed = 1
            print(f"{row.name}: {measure.in_words(error)}", file=sys.stderr)
    return failed


def _measure(chosen: list[Row], all_rows: tuple[Row, ...], arguments: argparse.Namespace) -> int:
    load = os.getloadavg()[0]
    if load > 0.5 * measure.num_cores():
        print(f"note: the machine is busy (load {load:.1f}), so the spread will be wide", file=sys.stderr)
    folder = arguments.folder
    results = report.load(folder / "results.json")
    failed = 0
    for row in chosen:
        result = measure.run(row, repeats=arguments.repeats)
        if row in ROWS and row.is_weighed and not (arguments.no_memory or result.error):
            result = _weighed(result)
        results[row.name] = result
        failed |= bool(result.error)
        print(report.in_a_line(result), flush=True)
        # After every row, so that an interrupted run keeps what it has.
        report.save([results[known.name] for known in all_rows if known.name in results], folder)
    return failed


def _weighed(result: measure.Result) -> measure.Result:
    theirs = None if result.peer_error else memory.of_side(result.name, "theirs")
    return dataclasses.replace(result, our_memory=memory.of_side(result.name, "ours"), their_memory=theirs)


if __name__ == "__main__":
    sys.exit(main())
