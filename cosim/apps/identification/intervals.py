"""The uncertainty of numbers from what they vary by when parts of the recordings are left out.

Errors that are left are hardly ever independent: mostly the model is wrong, and neighbouring samples alike. Clusters of
samples, each a recording or some seconds of one, are taken as independent, and whatever happens in them as noise: the
numbers are found again without each cluster, from the linearised problem, and vary by (C − 1) / C Σ (z₋c − z̄)²
(jackknife; MacKinnon, Nielsen and Webb, Journal of Applied Econometrics 38, 2023).
"""

from __future__ import annotations

import numpy as np

from cosim.core.types import Array

INTERVAL = 0.95
RIDGE = 1e-12  # of a normal matrix with a diagonal of 1: what nothing determines varies without end


def jackknife(normals: Array, scores: Array, prior: Array) -> Array:
    """(n, n) of C clusters with normal matrices (C, n, n) and gradients (C, n) at the least sum; prior (n,): the
    precision with which numbers are known beforehand, 0 for unknown ones."""
    whole = normals.sum(axis=0) + np.diag(prior)
    diagonal = np.diag(whole)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    of = np.outer(scale, scale)
    total, count = scores.sum(axis=0) * scale, len(normals)
    ridge = RIDGE * np.eye(len(scale))
    changes = []
    for normal, score in zip(normals, scores, strict=True):
        rest = (whole - normal) * of + ridge
        changes.append(-np.linalg.solve(rest, total - score * scale))
    varied = np.array(changes) - np.mean(changes, axis=0)
    spread = (count - 1) / count * varied.T @ varied
    inverse = np.linalg.inv(whole * of + ridge)
    known = prior * scale**2 + RIDGE  # what only the knowledge beforehand holds, varies as that
    return (spread + inverse @ (known[:, None] * inverse)) * of


def deviations_of_interval(clusters: int | None) -> float:
    """Standard deviations of half an interval of 95 %: of a t distribution of C − 1 degrees of freedom."""
    from scipy.stats import norm, t

    return float(norm.ppf(0.5 + INTERVAL / 2) if clusters is None else t.ppf(0.5 + INTERVAL / 2, clusters - 1))
