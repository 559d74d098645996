"""Feature maps and their kernels written down from the mathematics, dense and in NumPy."""

import math

import numpy as np
import scipy.linalg
import scipy.special


def fastfood_matrix(signs, permutation, gaussian, scale, *, input_dim, num_features):
    """V from (8), block by block with every factor a matrix; `scale` holds S / (sigma sqrt D)."""
    blocks = []
    for b, pi, g, s in zip(signs, permutation, gaussian, scale, strict=True):
        size = len(b)
        h = scipy.linalg.hadamard(size).astype(float)
        p = np.zeros((size, size))
        p[np.arange(size), pi] = 1
        blocks.append(np.diag(s) @ h @ np.diag(g) @ p @ h @ np.diag(b))
    return np.concatenate(blocks)[:num_features, :input_dim]


def sorf_matrix(signs, scale, *, input_dim, num_features):
    """V, block by block: H B_3 H B_2 H B_1."""
    blocks = []
    for b, s in zip(np.swapaxes(signs, 0, 1), scale, strict=True):
        h = scipy.linalg.hadamard(b.shape[1]).astype(float)
        blocks.append(np.diag(s) @ h @ np.diag(b[2]) @ h @ np.diag(b[1]) @ h @ np.diag(b[0]))
    return np.concatenate(blocks)[:num_features, :input_dim]


def gaussian_kernel(delta, bandwidth):
    return math.exp(-(delta @ delta) / (2 * bandwidth**2))


def laplacian_kernel(delta, bandwidth):
    return math.exp(-np.abs(delta).sum() / bandwidth)


def matern_kernel(nu):
    def kernel(delta, bandwidth):
        r = math.sqrt(2 * nu) * np.linalg.norm(delta) / bandwidth
        return 1.0 if r == 0 else 2 ** (1 - nu) / math.gamma(nu) * r**nu * scipy.special.kv(nu, r)

    return kernel


def sphere_kernel(size):
    """The mean of cos(w'delta) over w uniform on the sphere of radius sqrt(D) / bandwidth in D dimensions."""

    def kernel(delta, bandwidth):
        squared = size * (delta @ delta) / bandwidth**2
        return float(scipy.special.hyp0f1(size / 2, -squared / 4))

    return kernel


def sine_kernel(kernel, x, y, bandwidth):
    """What the sine alone estimates."""
    return (kernel(x - y, bandwidth) - kernel(x + y, bandwidth)) / 2


def gaussian_sine_kernel(x, y, bandwidth):
    """The same for the Gaussian, in the form with sinh."""
    return math.exp(-(x @ x + y @ y) / (2 * bandwidth**2)) * math.sinh(x @ y / bandwidth**2)
