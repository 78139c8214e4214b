"""Rows of operation counts: what is counted, crossovers, and peers that have the same chain."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks import rows_operation_counts as rows
from benchmarks.chains import general_chain, planar_chain, simple_chain, sympy_equations
from benchmarks.robots import random_state
from benchmarks.rows import BenchCase, measure_case
from cosim.mechanics.formulations import known_formulations, load_formulation
from tests.bench.test_bench import TINY
from tests.docs.documents import TABLES


def test_products_and_sums_are_counted_once_and_without_zeros():
    def fn(x, y):
        common = x[0] * y[0]
        return np.array([common + x[1] / y[1], common - x[1] * 0.0 - 1.0 * y[1]])

    assert rows.operations(fn, (2, 2)) == (2, 2)
    assert rows.counted(Counter(MUL=3, DIV=1, ADD=2, SUB=2, SIN=5, NEG=1)) == (4, 4)


def test_a_pendulum_takes_what_one_counts_by_hand():
    """q̈ = (τ − m g c cos q) / J: a product with the constant, a sum, and a product with 1 / J."""
    assert rows.of_formulation("separate_bodies", simple_chain, 1) == 3


def test_published_counts_for_six_joints():
    (_, aba), (_, rnea) = rows.PUBLISHED["forward_dynamics"], rows.PUBLISHED["inverse_dynamics"]
    assert (aba(6), rnea(6)) == ((1085, 982), (450, 386))


@pytest.mark.parametrize("name", rows.OURS)
@pytest.mark.parametrize("chain", [general_chain, planar_chain, simple_chain])
def test_formulations_agree_for_the_chains_that_are_counted(name, chain):
    model = chain(3)
    found = np.asarray(load_formulation(name, model.equations).forward_dynamics(*random_state(model)))
    np.testing.assert_allclose(found, model.equations.forward_dynamics(*random_state(model)), rtol=1e-10)


def test_counts_grow_as_the_formulations_claim():
    """A polynomial of a degree has constant differences of that order."""
    sizes = range(4, 13, 2)
    linear = [rows.of_formulation("separate_bodies", general_chain, n) for n in sizes]
    assert not np.diff(linear, 2).any()
    cubic = np.diff([rows.of_formulation("kane", general_chain, n) for n in sizes], 3)
    assert (cubic > 0).all() and cubic[0] == cubic[1]


def test_crossovers_are_named():
    text = rows.crossovers("newton_euler", general_chain, range(1, 6))
    assert text.startswith("; fewer than separate_bodies to 3, composite_bodies to 4")
    counts = {n: rows.of_formulation("newton_euler", general_chain, n) for n in (3, 4)}
    assert counts[3] < rows.of_formulation("separate_bodies", general_chain, 3)
    assert counts[4] > rows.of_formulation("separate_bodies", general_chain, 4)
    assert rows.crossovers("composite_bodies", general_chain, range(1, 6)) == ""


def test_a_row_has_the_counts_of_both_and_agrees():
    case = BenchCase("row", "", lambda effort: rows.by_bodies("kane", general_chain, (1, 2, 3), effort), unit="ops")
    row = measure_case(case, TINY)
    assert row.ours == rows.of_formulation("kane", general_chain, 3)
    assert row.other == rows.of_formulation("separate_bodies", general_chain, 3)
    assert row.agreement is not None and row.agreement < 1e-12
    assert row.note.startswith(f"{rows.of_formulation('kane', general_chain, 1)} for 1, ")


@pytest.mark.parametrize(("name", "method"), [("kane", "KanesMethod"), ("lagrange", "LagrangesMethod")])
def test_sympy_has_the_same_chain(name, method):
    measured = rows.beside_sympy(name, method, 2, TINY)
    assert measured.agreement is not None and measured.agreement < 1e-12
    assert measured.samples.other is not None and measured.samples.other[0] == 30  # 20 products with squares, 10 sums


def test_sympy_has_the_mass_matrix_of_the_chain():
    A, _, plain = sympy_equations(2, "KanesMethod")
    model, q = simple_chain(2), np.array([0.3, -0.7])
    values = dict(zip(plain, [*q, 0.1, 0.2, 0.0, 0.0], strict=True))
    np.testing.assert_allclose(np.array(A.xreplace(values), dtype=float), model.mass_matrix(q), rtol=1e-12)


def test_every_formulation_in_joint_coordinates_has_a_row():
    counted = {case.name.split()[1] for case in rows.CASES}
    assert {*rows.OURS, "planar_bodies"} <= counted
    assert {*rows.OURS, "planar_bodies", rows.REFERENCE} <= set(known_formulations())


def test_the_table_of_the_docs_has_the_counts():
    """The last column is checked for what is made in a few seconds."""
    head, *lines = TABLES["Operations of the formulations"]
    sizes = [int(cell.removeprefix("n = ")) for cell in head[1:]]
    table = {line[0].strip("`"): dict(zip(sizes, map(int, line[1:]), strict=True)) for line in lines}
    assert set(table) == {rows.REFERENCE, *rows.OURS}
    for name, counts in table.items():
        checked = sizes if name in (rows.REFERENCE, "composite_bodies") else sizes[:-1]
        assert counts[sizes[-1]] > counts[sizes[-2]]
        assert {n: counts[n] for n in checked} == {n: rows.of_formulation(name, general_chain, n) for n in checked}


def test_cartesian_coordinates_cost_the_same_with_each_body():
    counts = [rows.of_formulation("cartesian", general_chain, n) for n in (2, 3, 6, 10)]
    assert (counts[0], counts[2], counts[3]) == (1946, 9561, 17173)  # of the docs
    slopes = np.diff(counts) / np.diff([2, 3, 6, 10])
    assert slopes == pytest.approx(1903, rel=3e-3)


def test_the_table_of_loops_has_the_counts():
    head, *lines = TABLES["Operations with loops"]
    sizes = [int(cell.removeprefix("n = ")) for cell in head[1:]]
    table = {line[0].strip("`"): dict(zip(sizes, map(int, line[1:]), strict=True)) for line in lines}
    assert set(table) == {rows.REFERENCE, *rows.WITH_LOOPS} and tuple(sizes) == rows.LOOPS
    for name, counts in table.items():
        assert {n: counts[n] for n in sizes[:3]} == {n: rows.of_ladder(name, n) for n in sizes[:3]}


def test_a_row_of_loops_agrees():
    measured = rows.by_loops("dependent_coordinates", (1, 2), TINY)
    assert measured.agreement is not None and measured.agreement < 1e-11
    assert measured.note == "234 for 1, 839 for 2 loops; fewer than separate_bodies to 1"
