"""The study of super vectors.

sets        pairs of descriptors of every image, and splits of the images
codes       mixtures of the training descriptors, and every image as a vector
recognize   nearest neighbour, multinomial logistic regression and Joint Bayes on any codes
cross_view  retrieval across two views of people outside the training data
missing     views removed at random in training, at test and in both
report      tables and figures
missing_report  tables of missing views
across_report  those of retrieval and verification across views
study       the stages, one after the other
"""
