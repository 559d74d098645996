"""Pursuits and dictionaries as the papers write them: signal by signal, atom by atom, least squares by `lstsq`."""

import numpy as np


def omp(atoms, y, sparsity, tol=0.0):
    """Algorithm 1 with atoms of any length: support in the order of choice, and its coefficients."""
    length = np.linalg.norm(atoms, axis=0)
    usable = length > 0
    support, values = [], np.zeros(0)
    residual = y.copy()
    while len(support) < sparsity and np.linalg.norm(residual) > max(tol, 1e-12) * np.linalg.norm(y):
        proxy = np.where(usable, np.abs(atoms.T @ residual) / np.where(usable, length, 1), -1)
        proxy[support] = -1
        support.append(int(np.argmax(proxy)))
        values = np.linalg.lstsq(atoms[:, support], y, rcond=None)[0]
        residual = y - atoms[:, support] @ values
    return support, values


def codes(atoms, signals, sparsity):
    """Dense codes `[n, k]`."""
    out = np.zeros((len(signals), atoms.shape[1]))
    for row, y in zip(out, signals, strict=True):
        support, values = omp(atoms, y, sparsity)
        row[support] = values
    return out


def codebook(atoms, dense, signals, *, exact):
    """The codebook stage of Algorithm 2 on D `[d, k]` and X `[n, k]`: the error matrix of each atom in full."""
    atoms, dense = atoms.copy(), dense.copy()
    for k in range(atoms.shape[1]):
        users = np.flatnonzero(dense[:, k])
        if users.size == 0:
            continue
        others = np.delete(np.arange(atoms.shape[1]), k)
        error = signals[users] - dense[np.ix_(users, others)] @ atoms[:, others].T  # E_k^R, transposed
        if exact:
            atoms[:, k] = np.linalg.svd(error)[2][0]
        else:
            direction = error.T @ dense[users, k]
            atoms[:, k] = direction / np.linalg.norm(direction)
        dense[users, k] = error @ atoms[:, k]
    return atoms, dense


def ksvd(atoms, signals, sparsity, num_iters, *, exact):
    """Sweeps without replacement; the dictionary and the error with which each sweep starts."""
    errors = []
    for _ in range(num_iters):
        dense = codes(atoms, signals, sparsity)
        errors.append(((signals - dense @ atoms.T) ** 2).sum())
        atoms, dense = codebook(atoms, dense, signals, exact=exact)
    return atoms, np.array(errors)


def kernel_omp(gram, coefficients, similarities, sparsity):
    """(3) in coefficients: `min k(z, z) - 2 g'A'k_z + g'A'KAg`, one atom at a time."""
    among = coefficients.T @ gram @ coefficients
    with_z = coefficients.T @ similarities
    support, values = [], np.zeros(0)
    for _ in range(sparsity):
        proxy = with_z - among[:, support] @ values
        score = np.abs(proxy) / np.sqrt(np.diag(among))
        score[support] = -1
        support.append(int(np.argmax(score)))
        values = np.linalg.solve(among[np.ix_(support, support)], with_z[support])
    return support, values


def kernel_ksvd(gram, coefficients, sparsity, num_iters):
    """Kernel K-SVD by the eigenvectors of `E'KE`, as in the literature: nothing but K and A is ever used."""
    a, n = coefficients.copy(), len(gram)
    errors = []
    for _ in range(num_iters):
        x = np.zeros((a.shape[1], n))
        for i in range(n):
            support, values = kernel_omp(gram, a, gram[:, i], sparsity)
            x[support, i] = values
        left = np.eye(n) - a @ x
        errors.append(np.trace(left.T @ gram @ left))
        for k in range(a.shape[1]):
            users = np.flatnonzero(x[k])
            if users.size == 0:
                continue
            error = (np.eye(n) - a @ x + np.outer(a[:, k], x[k]))[:, users]
            values, vectors = np.linalg.eigh(error.T @ gram @ error)
            a[:, k] = error @ vectors[:, -1] / np.sqrt(values[-1])
            x[k, users] = np.sqrt(values[-1]) * vectors[:, -1]
    return a, np.array(errors)


def stream_step(atoms, past, codes, x):
    """A step of a stream on dense arrays: atoms `[d, k]` of length one, their new weights, and the length of the step.

    The parabola `|Y - (D + t S) X|^2 + sum_j p_j t^2 |s_j|^2` is taken through three of its points.
    """
    residual = x.T - atoms @ codes.T
    weight = past + (codes**2).sum(axis=0)
    used = weight > 0
    step = np.where(used, residual @ codes / np.where(used, weight, 1), 0)

    def value(t):
        return ((residual - t * step @ codes.T) ** 2).sum() + t**2 * (past * (step**2).sum(axis=0)).sum()

    curvature = (value(1) + value(-1)) / 2 - value(0)
    best = (value(-1) - value(1)) / 4 / curvature if curvature > 0 else 1.0
    length = 1.0 if value(1) <= value(0) else best
    moved = atoms + length * step
    size = np.linalg.norm(moved, axis=0)
    return moved / size, weight * size**2, length


def affine_posterior(mean, cov, visible, pixels):
    """The mean of all pixels under N(mean, cov) given some of them."""
    seen = cov[np.ix_(visible, visible)]
    return mean + cov[:, visible] @ np.linalg.solve(seen, pixels - mean[visible])
