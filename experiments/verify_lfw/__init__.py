"""The LFW protocol with Joint Bayes.

protocol  features, PCA and models from the people of all other folds, scores for the pairs of one fold
embedded  the same folds with embeddings of another tool
study     one stage a fold and kind of features
report    tables and figures
"""
