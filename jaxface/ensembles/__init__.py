"""Committees of recognisers on random subspaces and bags."""
