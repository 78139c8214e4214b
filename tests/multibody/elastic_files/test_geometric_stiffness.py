"""Bodies of finite elements with geometric stiffness, against beams whose axis keeps its length."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import save_npz

from cosim.multibody.elastic.geometric_stiffness import GeometricStiffness
from tests.multibody.elastic import test_elastic_motion as benchmark
from tests.multibody.elastic_files.bodies import TIP, beam, files_of, nodes_at
from tests.multibody.elastic_files.meshes import LENGTH, Bar, beam_mesh, tension_mesh
from tests.multibody.elastic_files.test_mistakes_in_files import said_of

BLADE = Bar(
    benchmark.LENGTH, benchmark.LINE, (6e-4, 6e-4), benchmark.EA, 1e4, (100.0 * benchmark.EI, benchmark.EI)
)  # stiff across the plane in which it turns


def stiffened(folder, bar, elements=16, force=True, **options):
    """The bar with its geometric stiffness under weight along it, spin across it and a force at its tip."""
    folder.mkdir(exist_ok=True)
    forces = {
        "weight": lambda x: bar.mass * (bar.length - x),
        "spin": lambda x: bar.mass * (bar.length**2 - x**2) / 2.0,
        "force": np.ones_like,
    }
    for name, along in forces.items():
        save_npz(folder / f"{name}.npz", tension_mesh(elements, bar.length, along))
    weight, spin, at_tip = (folder / f"{name}.npz" for name in forces)
    loads = GeometricStiffness({"x": weight}, {"y": spin, "z": spin}, {"tip": {"x": at_tip}} if force else {})
    mesh = beam_mesh(elements, bar)
    tip = {"tip": nodes_at(mesh[0], bar.length)}
    return files_of(mesh, folder, interfaces=tip, stiffening=loads, **options)


def moments(link):
    """∫g, ∫x g and g at the tip, along x, of modes that bend along y."""
    modal = link.modal
    tip = link.displacement(np.array([link.moment[0] / link.mass * 2.0, 0.0, 0.0])).path
    y = np.abs(tip.linear[:, 1]) > 0.5
    parts = np.einsum("k,kuv->uv", modal.fraction, modal.curve[..., 0]), tip.curve[..., 0]
    signs = np.sign(tip.linear[y, 1])
    x = np.einsum("k,kuv->uv", modal.position[:, 0], modal.curve[..., 0])
    return [part[np.ix_(y, y)] * np.outer(signs, signs) for part in (*parts, x)]


def test_second_order_displacements_are_those_of_the_beam(tmp_path):
    found = moments(stiffened(tmp_path / "files", Bar(), modes=4).link())
    theory = moments(replace(beam((2, 2, 0, 0), 1e5), stiffening=True).link())
    for have, want in zip(found, theory, strict=True):
        assert have.shape == (2, 2) and have == pytest.approx(want, rel=1e-3)
    assert theory[1][0, 0] == pytest.approx(-1.162 / LENGTH, abs=1e-3)


def test_the_spin_up_of_the_benchmark(tmp_path):
    """The published deflections, to 0.3 %: curvature that is not small has no matrix."""
    tip = benchmark.spun_up(stiffened(tmp_path / "files", BLADE, modes=4).link(), 16.0)
    expected = {2.5: -0.1513, 5.0: -0.4688, 10.0: -0.3627, 12.5: -0.1126}
    assert [tip(t) for t in expected] == pytest.approx(list(expected.values()), abs=1e-3)
    assert tip(7.5) == pytest.approx(-0.559, abs=2e-3)


def test_without_geometric_stiffness_it_diverges(tmp_path):
    body = replace(stiffened(tmp_path / "files", BLADE, modes=4), stiffening=GeometricStiffness())
    assert benchmark.spun_up(body.link(), 10.0)(10.0) < -20.0


def buckling(link, load):
    """The lowest eigenvalue of the stiffness less that of a load that presses the tip along x [N]."""
    tip = link.displacement(TIP).path
    return np.linalg.eigvalsh(link.stiffness + load * tip.curve[..., 0])[0]


def test_a_column_buckles_under_the_load_of_euler(tmp_path):
    """π² EI / 4 L², with EI of the weaker direction."""
    bar = Bar()
    link = stiffened(tmp_path / "files", bar, modes=6).link()
    critical = np.pi**2 * min(bar.bending) / (4.0 * LENGTH**2)
    assert buckling(link, 0.995 * critical) > 0.0 > buckling(link, 1.005 * critical)


def test_a_change_of_a_load_is_not_taken_from_the_cache(tmp_path, cache):
    first = stiffened(tmp_path / "files", Bar(), 4, modes=2)
    curve = first.link().modal.curve
    save_npz(tmp_path / "files" / "spin.npz", 2.0 * tension_mesh(4, LENGTH, np.ones_like))
    again = replace(first).link().modal.curve
    assert np.abs(again - curve).max() > 0.1 * np.abs(curve).max()
    without = stiffened(tmp_path / "files", Bar(), 4, force=False, modes=2).link()
    assert not without.displacement(TIP).path.curve.any()


def test_loads_that_are_wrong(tmp_path, said):
    folder = tmp_path / "files"
    body = stiffened(folder, Bar(), 2, modes=2)
    said(said_of(replace(body, stiffening=GeometricStiffness(force={"top": {}})).link, folder))
    skew = tension_mesh(2, LENGTH, np.ones_like).tolil()
    skew[7, 11] += 2.0 * skew.tocsr().max()
    for matrix in (tension_mesh(3, LENGTH, np.ones_like), skew.tocsr()):
        save_npz(folder / "spin.npz", matrix)
        said(said_of(replace(body).link, folder), r"(?<=by )0\.\d+")
