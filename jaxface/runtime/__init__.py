"""Running studies: flags and configs, the run's folder, checkpoints, model files, logs. Nothing here computes.

launch       the absl entry point: `launch.main(run)` with `--config` and `--workdir`
command      mistakes on the command line, found before a study starts
workdir      a run's folder: stages, atomic files, the same command twice does nothing
sources      what the data of a run were, and how they differ now
record       run.json: how a run ended, with which versions, and the attempts before it
files        files that are whole or absent, digests that tell a changed one, errors that name them
lock         one process a folder, on every system
distributed  the start of several processes, and their end, with a sentence for each failure
roll_call    which processes take part, before JAX connects them
serial       values as the content of files
checkpoint   orbax checkpoints of iterative runs; a damaged one is named and skipped
params_io    model files: safetensors with class, static fields, version and digest
structure    models as JSON and tensors, each part checked against its class
log          scalars to a file of JSON lines; progress bars
sections     config sections to keyword arguments and functions, with the nearest name for a typo
environment  precision, compilation cache, provenance
resources    threads and memory of a process
"""

from jaxface.core import lazy

__all__ = ["checkpoint", "environment", "launch", "log", "params_io", "resources", "sections", "workdir"]

__getattr__ = lazy.modules_of(__name__, __all__)
