"""Photographs as embeddings.

study   one stage: the largest face of every photo, aligned and described
report  the page
"""
