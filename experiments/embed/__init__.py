"""Photographs as embeddings.

study   chunks of photos: a face of each, aligned and described
report  the page
"""
