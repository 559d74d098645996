"""People out of a heap of photos: who is on which, without names.

study    two ways: a verifier of others groups all photos, or one is trained on some people and measured on others
heap     photos, faces or vectors, and faces of one photo, which show different people
methods  clusters by ratios of sets, and two others: average linkage of cosines, k-means
splits   one split by people: training, choices on held-out people, clusters of people never seen
report   the pages, the groups as a CSV file, and faces to look at
"""
