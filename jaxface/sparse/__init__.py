"""Sparse codes, dictionaries and hallucination."""
