"""The study of random-sampling committees.

samples   the images of a random split in principal coordinates
methods   single LDAs tuned on held-out images, and committees: errors on the same probes
analysis  sizes of a committee, its growth, and strength against diversity
report    tables and figures
study     the stages, one after the other
"""
