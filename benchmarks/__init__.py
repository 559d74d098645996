"""Side-by-side timings of jaxface and of what a user would run instead.

    python -m benchmarks.run                         every row, 7 interleaved repeats
    python -m benchmarks.run --rows F4,F5            some rows; the others keep their last results
    python -m benchmarks.run --rows F4 --check       only: do both sides give the same answer?
    python -m benchmarks.costs                       operations of a few programs, without a clock

rows         what a row is: data, our side, the peer, the target, and the check that both agree
measure      runs a row: agreement first, then both sides in turn, each with its own BLAS threads
report       results.json, and RESULTS.md and results.svg made from it
run          the command line, and `GROUPS`, the modules that hold rows
memory       the memory of one side of a row, in a process that does nothing else
floors       the indispensable work of rows
costs        what XLA counts for a few programs against the count on paper
foundation   rows F: imports, all pairs to a ROC, intervals by resampling subjects
startup      row F2: a process from its start to a first score
streaming    rows S: data larger than memory
dictionaries row S3: a dictionary from a million faces
gallery      rows S4: the best people and the rank of the mate in a large gallery
people       rows B1 and B2: people out of a heap of embeddings; PX-EM against EM
heaps        people out of more photos than a matrix of gains takes, by a command of its own
evaluation   row E1: every measure of a million scores
all_pairs    the work of F3 and F4 and their peers

More rows are a module with a tuple `ROWS`, named in `run.GROUPS`:

    def _whiten(x):
        peer = importlib.import_module("a_peer")  # inside the function: a peer that is missing costs one row
        ...

    ROWS = (
        Row(
            name="X1", work="whitening of 1,000 x 64", peer="a_peer.whiten", dtype="f32", packages=("a-peer",),
            data=..., ours=..., theirs=_whiten, agree=..., target=rows.speedup(10.0),
        ),
    )

A side that starts a process returns `rows.Timed` with its own seconds; limits beside time are `rows.Quantity`.
"""
