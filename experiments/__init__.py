"""Studies that run and report: `python -m experiments.NAME --config=configs/NAME.py --workdir=FOLDER`."""
