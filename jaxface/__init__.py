"""jaxface: classical and probabilistic face recognition as pure JAX functions.

Every room is a module of functions over pytrees of parameters: `from jaxface.subspace import pca`.
"""

__version__ = "0.1.0"

__all__ = []
