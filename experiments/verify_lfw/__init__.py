"""The LFW protocol with Joint Bayes.

protocol  features, PCA and a model from the people of all other folds, scores for the pairs of one
study     one stage a fold and kind of features
report    tables and figures
"""
