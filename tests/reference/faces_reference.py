"""Image features written pixel by pixel from their definitions, in NumPy loops and float64."""

import math

import numpy as np
import scipy.fft


def resize_area(image, height, width):
    """Every pixel cut into whole parts of the new grid, then plain means: the integral of a step function."""
    h, w = image.shape[:2]
    fine = np.repeat(np.repeat(image, height, axis=0), width, axis=1)
    return fine.reshape(height, h, width, w, *image.shape[2:]).mean(axis=(1, 3))


def resize_kernel(image, height, width, kernel, support):
    """Normalised two-dimensional kernel sum at every new pixel centre, widened when shrinking."""
    h, w = image.shape[:2]
    scale_y, scale_x = h / height, w / width
    out = np.zeros((height, width, *image.shape[2:]))
    for i in range(height):
        for j in range(width):
            y, x = (i + 0.5) * scale_y - 0.5, (j + 0.5) * scale_x - 0.5
            total, norm = 0.0, 0.0
            for r in range(h):
                for c in range(w):
                    dy, dx = (r - y) / max(scale_y, 1), (c - x) / max(scale_x, 1)
                    if abs(dy) < support and abs(dx) < support:
                        weight = kernel(dy) * kernel(dx)
                        total = total + weight * image[r, c]
                        norm += weight
            out[i, j] = total / norm
    return out


def triangle(t):
    return max(0.0, 1 - abs(t))


def lanczos3(t):
    return 1.0 if t == 0 else 3 * math.sin(math.pi * t) * math.sin(math.pi * t / 3) / (math.pi * t) ** 2


def local_norm(image, window, floor):
    h, w = image.shape
    reach = window // 2
    mean, variance = np.zeros((h, w)), np.zeros((h, w))
    for y in range(h):
        for x in range(w):
            patch = image[max(y - reach, 0) : y + reach + 1, max(x - reach, 0) : x + reach + 1]
            mean[y, x], variance[y, x] = patch.mean(), patch.var()
    return (image - mean) / np.sqrt(np.maximum(variance, floor * variance.mean()))


def _radial(r):
    return 0.0 if r == 0 else r * r * math.log(r)


def tps(source, target, ridge, points):
    """The spline through the null space of the side conditions, evaluated point by point."""
    k = len(source)
    mean = source.mean(axis=0)
    scale = math.sqrt(((source - mean) ** 2).sum() / k)
    knots, points = (source - mean) / scale, (points - mean) / scale
    kernel = np.array([[_radial(np.linalg.norm(p - q)) for q in knots] for p in knots])
    border = np.column_stack([np.ones(k), knots])
    q, r = np.linalg.qr(border, mode="complete")
    null = q[:, 3:]
    regular = kernel + ridge * np.eye(k)
    weights = null @ np.linalg.solve(null.T @ regular @ null, null.T @ target)
    affine = np.linalg.solve(r[:3], q[:, :3].T @ (target - regular @ weights))
    out = np.zeros_like(points)
    for n, p in enumerate(points):
        bend = sum(_radial(np.linalg.norm(p - knot)) * weight for knot, weight in zip(knots, weights, strict=True))
        out[n] = affine[0] + p @ affine[1:] + bend
    return out


def bilinear(image, points):
    h, w = image.shape[:2]
    out = []
    for x, y in points:
        x, y = min(max(x, 0), w - 1), min(max(y, 0), h - 1)
        value = 0.0
        for r in range(h):
            for c in range(w):
                value = value + triangle(y - r) * triangle(x - c) * image[r, c]
        out.append(value)
    return np.array(out)


def lbp_code(image, y, x, radius, num_points):
    code = 0
    for p in range(num_points):
        angle = 2 * math.pi * p / num_points
        value = bilinear_inside(image, y - radius * math.sin(angle), x + radius * math.cos(angle))
        if value >= image[y, x] - 1e-9:
            code += 2**p
    return code


def bilinear_inside(image, y, x):
    y, x = (round(v) if abs(v - round(v)) < 1e-9 else v for v in (y, x))
    top, left = math.floor(y), math.floor(x)
    value = 0.0
    for r in (top, top + 1):
        for c in (left, left + 1):
            weight = triangle(y - r) * triangle(x - c)
            if weight > 0:
                value += weight * image[r, c]
    return value


def lbp_codes(image, radius, num_points=8):
    border = math.ceil(radius)
    h, w = image.shape
    return np.array(
        [
            [lbp_code(image, y, x, radius, num_points) for x in range(border, w - border)]
            for y in range(border, h - border)
        ]
    )


def uniform_codes(num_points):
    """Codes whose circular string of bits has at most two changes, in increasing order."""
    found = []
    for code in range(2**num_points):
        bits = format(code, f"0{num_points}b")
        if sum(a != b for a, b in zip(bits, bits[1:] + bits[0], strict=True)) <= 2:
            found.append(code)
    return found


def lbp_histograms(image, radius, cells, num_points=8):
    uniform = uniform_codes(num_points)
    border = math.ceil(radius)
    h, w = image.shape
    out = np.zeros((*cells, num_points * (num_points - 1) + 3))
    for y in range(border, h - border):
        for x in range(border, w - border):
            code = lbp_code(image, y, x, radius, num_points)
            pattern = uniform.index(code) if code in uniform else out.shape[2] - 1
            out[y * cells[0] // h, x * cells[1] // w, pattern] += 1
    return out / out.sum(axis=2, keepdims=True)


def hog_cells(image, cell, num_bins, signed):
    h, w = image.shape
    rows, columns = h // cell, w // cell
    turn = 2 * math.pi if signed else math.pi
    width = turn / num_bins
    out = np.zeros((rows, columns, num_bins))
    for y in range(h):
        for x in range(w):
            down, up = min(y + 1, h - 1), max(y - 1, 0)
            right, left = min(x + 1, w - 1), max(x - 1, 0)
            d_row = (image[down, x] - image[up, x]) / (down - up)
            d_column = (image[y, right] - image[y, left]) / (right - left)
            magnitude = math.hypot(d_row, d_column)
            angle = math.atan2(d_row, d_column) % turn
            lower = math.floor(angle / width - 0.5)
            share = angle / width - 0.5 - lower
            for i in range(rows):
                for j in range(columns):
                    part = _overlap(y, i, h / rows) * _overlap(x, j, w / columns)
                    out[i, j, lower % num_bins] += part * magnitude * (1 - share)
                    out[i, j, (lower + 1) % num_bins] += part * magnitude * share
    return out / (h / rows * w / columns)


def _overlap(pixel, cell, size):
    return max(0.0, min(pixel + 1, (cell + 1) * size) - max(pixel, cell * size))


def hog(image, cell, num_bins, block, signed, clip, floor):
    cells = hog_cells(image, cell, num_bins, signed)
    rows, columns = cells.shape[0] - block + 1, cells.shape[1] - block + 1
    parts = [cells[i : i + block, j : j + block].ravel() for i in range(rows) for j in range(columns)]
    mean_energy = sum(part @ part for part in parts) / len(parts)
    out = []
    for part in parts:
        clipped = np.minimum(part / math.sqrt(part @ part + floor * mean_energy), clip)
        out.append(clipped / math.sqrt(clipped @ clipped + floor))
    return np.concatenate(out)


def srgb_matrix():
    """XYZ of linear red, green and blue: primaries scaled so that they add up to the white D65."""
    primaries = np.array([[x, y, 1 - x - y] for x, y in [(0.64, 0.33), (0.30, 0.60), (0.15, 0.06)]]).T
    white = np.array([0.3127 / 0.3290, 1.0, (1 - 0.3127 - 0.3290) / 0.3290])
    return primaries @ np.diag(np.linalg.inv(primaries) @ white), white


def luv_pixel(rgb):
    matrix, white = srgb_matrix()
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
    x, y, z = matrix @ linear
    lightness = 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else 24389 / 27 * y
    if x + 15 * y + 3 * z == 0:
        return np.zeros(3)
    u, v = 4 * x / (x + 15 * y + 3 * z), 9 * y / (x + 15 * y + 3 * z)
    total = white @ [1, 15, 3]
    return np.array([lightness, 13 * lightness * (u - 4 * white[0] / total), 13 * lightness * (v - 9 / total)])


def luv(image):
    return np.array([[luv_pixel(pixel) for pixel in row] for row in image])


def luv_histogram(image, num_bins, ranges, *, soft):
    out = np.zeros((num_bins,) * 3)
    for row in image:
        for pixel in row:
            place = [(v - a) / (b - a) * num_bins for v, (a, b) in zip(luv_pixel(pixel), ranges, strict=True)]
            if not soft:
                out[tuple(min(max(math.floor(p), 0), num_bins - 1) for p in place)] += 1
                continue
            centers = [min(max(p - 0.5, 0), num_bins - 1) for p in place]
            shares = [[triangle(p - b) for b in range(num_bins)] for p in centers]
            out += np.einsum("a,b,c->abc", *shares)
    return out.ravel() / (image.shape[0] * image.shape[1])


ZIGZAG = [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (0, 3), (1, 2), (2, 1), (3, 0)]


def block_dct(image, grid, block, num_coefficients):
    small = resize_area(image, grid[0] * block, grid[1] * block)
    out = []
    for i in range(grid[0]):
        for j in range(grid[1]):
            part = small[i * block : (i + 1) * block, j * block : (j + 1) * block]
            spectrum = scipy.fft.dctn(part, type=2, norm="ortho")
            out += [spectrum[place] for place in ZIGZAG[:num_coefficients]]
    return np.array(out)
