"""Mixtures of probabilistic CCA and the vectors they encode sets of descriptors in."""
