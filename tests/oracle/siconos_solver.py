"""Contact problems solved by Siconos, in the Python of the system, whose package `python3-siconos` is:

    /usr/bin/python3 siconos_solver.py PROBLEMS.npz IMPULSES.npz

PROBLEMS has count, and for each k W<k>, c<k>, friction<k>, by contact along t1, t2, n; IMPULSES gets <method><k>.
"""

import sys

import numpy as np
import siconos.numerics as sn

METHODS = {"NSN_AC": 2_000, "NSGS": 100_000}  # semismooth Newton of Alart and Curnier, Gauss–Seidel; most iterations
NORMAL_FIRST = (2, 0, 1)


def solved(W, c, friction, method):
    n = len(friction)
    order = np.array([3 * j + row for j in range(n) for row in NORMAL_FIRST])
    theirs = np.asfortranarray(W[np.ix_(order, order)]), c[order].copy(), friction.copy()
    problem = sn.FrictionContactProblem(3, n, *theirs)
    options = sn.SolverOptions(getattr(sn, f"SICONOS_FRICTION_3D_{method}"))
    options.dparam[sn.SICONOS_DPARAM_TOL] = 1e-14
    options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = METHODS[method]
    impulses = np.zeros(3 * n)
    sn.fc3d_driver(problem, impulses, np.zeros(3 * n), options)
    found = np.empty(3 * n)
    found[order] = impulses
    return found


if __name__ == "__main__":
    problems, found = np.load(sys.argv[1]), {}
    for k in range(int(problems["count"])):
        for method in METHODS:
            found[f"{method}{k}"] = solved(*(problems[f"{name}{k}"] for name in ("W", "c", "friction")), method)
    np.savez(sys.argv[2], **found)
