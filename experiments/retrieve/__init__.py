"""Retrieval of photographs after learning from small groups of similar ones.

study   one stage for each scaling of the features
report  tables and figures
"""
