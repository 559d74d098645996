"""The tour: every section has `run(config, faces, rng) -> arrays` and `render(arrays, faces) -> Part`.

pixels         descriptors and plain nearest neighbours
subspaces      Eigenfaces and Fisherfaces
unseen_people  verification of people whom no map was fitted to
clusters       k-means
same_person    Joint Bayes with transfer
groups         NP-PER and RCA on weak labels
committees     random-sampling LDA
gallery        faces from their eye regions
super_vectors  super vectors and Fisher vectors
feature_maps   kernels as features, and the way back
part           the contribution of a section to the page
study          all of them as stages
"""
