"""Retrieval of photographs after learning from small groups of similar ones.

study    one stage for each scaling of the features and each number of classes
report   the page
classes  tables and figures against the number of classes
answers  queries with their answers, as pictures
"""
