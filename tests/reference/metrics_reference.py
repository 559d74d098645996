"""The metrics from their definitions: loops over thresholds, pairs, windows and orders, slow and obvious."""

import itertools
import math
from fractions import Fraction

import numpy as np


def roc_points(scores, is_same):
    """(threshold, FAR, VR) as exact fractions: nobody, then every distinct score from the top."""
    genuine = [s for s, same in zip(scores, is_same, strict=True) if same]
    impostor = [s for s, same in zip(scores, is_same, strict=True) if not same]
    points = [(math.inf, Fraction(0), Fraction(0))]
    for threshold in sorted(set(scores), reverse=True):
        far = Fraction(sum(s >= threshold for s in impostor), len(impostor))
        vr = Fraction(sum(s >= threshold for s in genuine), len(genuine))
        points.append((threshold, far, vr))
    return points


def auc(scores, is_same):
    genuine = [s for s, same in zip(scores, is_same, strict=True) if same]
    impostor = [s for s, same in zip(scores, is_same, strict=True) if not same]
    won = sum(Fraction(g > i) + Fraction(int(g == i), 2) for g in genuine for i in impostor)
    return won / (len(genuine) * len(impostor))


def eer(points):
    """The FAR at which some segment between two points meets FAR = 1 - VR."""
    for (_, f0, v0), (_, f1, v1) in itertools.pairwise(points):
        if f0 + v0 <= 1 <= f1 + v1:
            t = (1 - f0 - v0) / (f1 + v1 - f0 - v0)
            return f0 + t * (f1 - f0)
    raise AssertionError("the curve does not cross")


def eer_rocch(points):
    """The lowest crossing of any chord between two points: the hull is made of such chords."""
    crossings = []
    for (_, f0, v0), (_, f1, v1) in itertools.combinations(points, 2):
        if f0 + v0 <= 1 <= f1 + v1 and (f1 + v1) > (f0 + v0):
            t = (1 - f0 - v0) / (f1 + v1 - f0 - v0)
            crossings.append(f0 + t * (f1 - f0))
    return min(crossings)


def verification_rate(points, far):
    return max(vr for _, f, vr in points if float(f) <= far)


def isotonic(scores, is_same):
    """max over a <= i of min over b >= i of the mean of labels a..b, over distinct scores."""
    levels = sorted(set(scores))
    labels = [[same for s, same in zip(scores, is_same, strict=True) if s == level] for level in levels]

    def mean(a, b):
        pooled = [x for group in labels[a : b + 1] for x in group]
        return Fraction(int(sum(pooled)), len(pooled))

    n = len(levels)
    fit = {levels[i]: max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)}
    return [float(fit[s]) for s in scores]


def cllr(llr, is_same):
    genuine = [math.log2(1 + math.exp(-s)) for s, same in zip(llr, is_same, strict=True) if same]
    impostor = [math.log2(1 + math.exp(s)) for s, same in zip(llr, is_same, strict=True) if not same]
    return (sum(genuine) / len(genuine) + sum(impostor) / len(impostor)) / 2


def min_cllr(scores, is_same):
    """Cllr of the isotonic posteriors with the prior taken out."""
    odds = sum(is_same) / (len(is_same) - sum(is_same))
    posterior = isotonic(scores, is_same)
    llr = [math.inf if p == 1 else -math.inf if p == 0 else math.log(p / (1 - p) / odds) for p in posterior]
    return cllr(llr, is_same)


def min_dcf(points, prior, cost_miss, cost_false_accept):
    costs = [prior * cost_miss * (1 - vr) + (1 - prior) * cost_false_accept * far for _, far, vr in points]
    return min(float(c) for c in costs) / min(prior * cost_miss, (1 - prior) * cost_false_accept)


def people_scores(scores, gallery_ids, probe):
    """The best score of every gallery person for one probe."""
    best = {}
    for row, name in enumerate(gallery_ids):
        best[name] = max(best.get(name, -math.inf), scores[row][probe])
    return best


def mate_ranks(scores, gallery_ids, probe_ids):
    """For every probe the ranks its mate has over all orders of the tied people."""
    ranks = []
    for probe, name in enumerate(probe_ids):
        best = people_scores(scores, gallery_ids, probe)
        mate = best.pop(name)
        above = sum(s > mate for s in best.values())
        level = sum(s == mate for s in best.values())
        ranks.append([above + 1 + t for t in range(level + 1)])
    return ranks


def cmc(scores, gallery_ids, probe_ids, ties):
    ranks = mate_ranks(scores, gallery_ids, probe_ids)
    if ties == "pessimistic":
        ranks = [[max(r)] for r in ranks]
    people = len(set(gallery_ids))
    return [np.mean([np.mean([r <= k for r in each]) for each in ranks]) for k in range(1, people + 1)]


def open_set_rates(scores, gallery_ids, probe_ids, threshold, rank):
    alarms, found = [], []
    for probe, name in enumerate(probe_ids):
        best = people_scores(scores, gallery_ids, probe)
        if name not in best:
            alarms.append(any(s >= threshold for s in best.values()))
            continue
        mate = best.pop(name)
        within = sum(s >= mate for s in best.values()) + 1 <= rank
        found.append(within and mate >= threshold)
    return np.mean(alarms), np.mean(found)


def tied_orders(scores):
    """Every order of the list that never puts a lower score first."""
    for order in itertools.permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            yield order


def expected_hits(scores, correct, k):
    return np.mean([sum(correct[i] for i in order[:k]) for order in tied_orders(scores)])


def average_precision(scores, correct):
    """Area under precision over recall as steps, one step a distinct score."""
    total, recall_before, area = sum(correct), 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        listed = [c for s, c in zip(scores, correct, strict=True) if s >= threshold]
        recall = sum(listed) / total
        area += (recall - recall_before) * sum(listed) / len(listed)
        recall_before = recall
    return area


def ssim(image, reference, peak):
    """Mean over all full 11 x 11 windows of the SSIM of their Gaussian-weighted moments."""
    offsets = np.arange(11) - 5
    weights = np.exp(-(offsets[:, None] ** 2 + offsets[None, :] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    values = []
    for top in range(image.shape[0] - 10):
        for left in range(image.shape[1] - 10):
            a, b = image[top : top + 11, left : left + 11], reference[top : top + 11, left : left + 11]
            mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
            var_a = (weights * (a - mean_a) ** 2).sum()
            var_b = (weights * (b - mean_b) ** 2).sum()
            cov = (weights * (a - mean_a) * (b - mean_b)).sum()
            values.append(
                (2 * mean_a * mean_b + c1) * (2 * cov + c2) / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
            )
    return np.mean(values)


def expanded_pairs(scores, is_same, subject_a, subject_b, multiplicity):
    """The pairs of a resample written out: copies of people are new people, copies of one person never meet."""
    out = []
    for score, same, a, b in zip(scores, is_same, subject_a, subject_b, strict=True):
        for copy_a in range(multiplicity[a]):
            for copy_b in range(multiplicity[b]):
                if not same or copy_a == copy_b:
                    out.append((score, same))
    return [s for s, _ in out], [same for _, same in out]


def lfw_accuracy(scores, is_same, folds):
    accuracy = []
    for fold in sorted(set(folds)):
        train = [(s, y) for s, y, f in zip(scores, is_same, folds, strict=True) if f != fold]
        test = [(s, y) for s, y, f in zip(scores, is_same, folds, strict=True) if f == fold]
        thresholds = sorted({s for s, _ in train} | {math.inf}, reverse=True)
        right = [sum((s >= t) == y for s, y in train) for t in thresholds]
        threshold = thresholds[right.index(max(right))]
        accuracy.append(sum((s >= threshold) == y for s, y in test) / len(test))
    mean = sum(accuracy) / len(accuracy)
    variance = sum((a - mean) ** 2 for a in accuracy) / (len(accuracy) - 1)
    return mean, math.sqrt(variance / len(accuracy)), accuracy
