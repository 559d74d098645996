"""Weights of photos from their quality, where the truth is known: photos are degraded by known amounts.

study    two stages: the features of the degraded photos, and the scores of every fold of the people
degrade  blurred, shrunk and darkened photos
measured qualities that a user can measure on a photo
faces    SFace vectors of degraded photos, with the score of the detector
methods  the model without weights, and those with weights of every quality
report   the page
"""
