"""One ml_collections file a study; each takes a variant after a colon: `--config=configs/tour.py:smoke`."""
