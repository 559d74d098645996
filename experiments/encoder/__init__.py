"""An encoder trained through the log-likelihood ratio of pairs and of sets, and gradients back to the pixels.

study     splits, training, measures on people never seen, the saved parts
network   a small encoder as a pytree of weights, which begins as PCA
training  mini-batches of people, the loss, optax
saliency  what the ratio of a pair sees in the pixels of both photos
report    tables and figures
"""
