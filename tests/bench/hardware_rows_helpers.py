"""Shared by the tests of hardware rows."""

from cosim import bench


def named(name):
    return next(case for case in bench.CASES if case.name == name)
