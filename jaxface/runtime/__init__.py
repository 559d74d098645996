"""Running studies: flags and configs, the run's folder, checkpoints, model files, logs. Nothing here computes.

launch       the absl entry point: `launch.main(run)` with `--config` and `--workdir`
workdir      a run's folder: stages, atomic files, the same command twice does nothing
checkpoint   orbax checkpoints of iterative runs; a damaged one is named and skipped
params_io    model files: safetensors with class, static fields, version and digest
log          scalars to JSONL, the log and TensorBoard; progress bars
select       config sections to keyword arguments and functions, with the nearest name for a typo
environment  precision, BLAS threads, compilation cache, provenance
"""
