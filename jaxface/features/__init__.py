"""Explicit feature maps of kernels, and the way back."""
