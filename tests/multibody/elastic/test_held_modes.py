"""Elastic links in closed loops: modes that the loops hold, and links with enough of them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh, null_space
from scipy.sparse import save_npz

from tests.multibody.assembled import folder, mistake, redundant, rig
from tests.multibody.elastic_files.meshes import LENGTH, beam_mesh

__all__ = ["folder"]

BEAM = "length: 1, stiffness: {mass: 1, EI: [1, 1], EA: 1e4}"
HINGE, WELD, SLOT = "axis: [0, 0, 1]", "type: fixed", "type: prismatic, axis: [1, 0, 0]"


def held(source, loop=HINGE, root="type: fixed", more=""):
    """A bar of 1 m between the ground and the ground, with the modes of this source."""
    return f"""\
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: bar, {root}}}
  elastic: [{{link: bar, {source}}}]
  loops:
    - {{name: pin, {loop}, parent: bar, child: base, origin: {{xyz: [1, 0, 0]}}, child_origin: {{xyz: [1, 0, 0]}}}}
{more}"""


def beam(modes, ends="clamped, free", more=""):
    return f"beam: {{{BEAM}, modes: {{{modes}}}, ends: [{ends}]{more}}}"


HELD = {
    "one mode": (beam("bend_y: 1"), HINGE),
    "two modes": (beam("bend_z: 2"), HINGE),
    "one of three kinds": (beam("bend_y: 3, stretch: 1, bend_z: 1"), HINGE),
    "two of a weld": (beam("bend_y: 2, stretch: 1"), WELD),
    "the axis at a hinge": (beam("bend_y: 2"), HINGE),
    "the axis at a weld": (beam("bend_y: 3"), WELD),
    "the axis of a pinned tip": (beam("bend_y: 2", "clamped, pinned"), HINGE),
    "the axis of a clamped tip": (beam("bend_y: 2", "clamped, clamped"), WELD),
    "the axis beside stretch of a clamped tip": (beam("bend_y: 2, stretch: 2", "clamped, clamped"), WELD),
}


@pytest.mark.parametrize("case", HELD)
def test_a_beam_with_too_few_modes_for_its_loop(case, said):
    line = mistake(held(*HELD[case]))
    assert line.startswith("rig.yaml:7 mechanism.loops[0]: 'pin' holds 'bar")
    assert ("along its axis" in line) == ("axis" in case)
    said(line)


@pytest.mark.parametrize(
    ("source", "loop"),
    [
        (beam("bend_y: 2, stretch: 1"), HINGE),
        (beam("bend_y: 3, stretch: 1"), WELD),
        (beam("bend_y: 2, stretch: 1", "clamped, pinned"), HINGE),
        (beam("bend_y: 2", "clamped, clamped", ", stiffening: false"), WELD),
        (beam("bend_y: 3"), SLOT),
    ],
)
def test_a_beam_with_enough(source, loop):
    assert rig(held(source, loop)).plant.immobile is None


def test_a_hinge_at_the_root_and_one_at_the_tip():
    """A rod between two hinges: one mode of a cantilever is a turn of the root. Along the axis nothing gives way."""
    source = beam("bend_y: 1, stretch: 1")
    assert rig(held(source, HINGE, HINGE)).plant.start.immobile is None
    assert "along its axis" in mistake(held(beam("bend_y: 1"), HINGE, HINGE))
    turned = "joints: {bar: {prescribed: {type: sine, amplitude: 1 deg, frequency: 1 Hz, ramp: 1 s}}}\n"
    assert "'pin' holds 'bar.bend_y_1'" in mistake(held(source, HINGE, HINGE, turned))


def test_a_loop_that_is_released_may_hold_modes():
    source, released = beam("bend_y: 1"), "events: [{do: release, of: pin, at: 0.1}]\n"
    assert "bar.bend_y_1" in rig(held(source, HINGE, more=released)).plant.model.dof_names


def table(**more):
    np.savez(
        "bar.npz",
        positions=[[0.0, 0, 0], [0.5, 0, 0], [1.0, 0, 0]],
        masses=[0.25, 0.5, 0.25],
        displacements=[[[0.0, 0, 0]], [[0.0, 0.3, 0]], [[0.0, 1.0, 0]]],
        frequencies=[5.0],
        **more,
    )
    return "table: {file: bar.npz}"


SHAPES = """\
import numpy as np
from cosim.plugin import ShapeFunctions
from cosim.plugin import params

@params
class Params:
    pass

def load(params):
    linear = lambda x: np.array([[0.0, x**2, 0.0]])
    return ShapeFunctions(1.0, lambda x: 1.0, (("bend", "m"),), linear, [[4.0]])
"""


def test_tables_and_functions_with_too_few_modes(said):
    said(mistake(held(table())))
    source = table(second_order=[[[[0.0, 0, 0]]], [[[-0.2, 0, 0]]], [[[-1.2, 0, 0]]]])
    said(mistake(held(source, "type: prismatic, axis: [0, 1, 0]")))
    Path("bar.py").write_text(SHAPES)
    said(mistake(held("shapes: {type: bar.py}")))


def mesh(options):
    position, mass, stiffness = beam_mesh(8)
    save_npz("M.npz", mass)
    save_npz("K.npz", stiffness)
    rows = [f"{k},{x},{y},{z}" for k, (x, y, z) in enumerate(position, 1)]
    Path("nodes.csv").write_text("\n".join(["node,x,y,z", *rows]) + "\n")
    files = "mass: M.npz, stiffness: K.npz, nodes: nodes.csv, root: [1], interfaces: {tip: [9]}"
    return f"finite_elements: {{{files}, {options}}}"


def test_finite_elements_with_too_few_modes(said):
    """The lowest four bend, and the weld holds them all."""
    said(mistake(held(mesh("modes: 4"), WELD)))
    said(mistake(held(mesh("modes: 6, held: [tip]"), WELD)))
    assert redundant(held(mesh("modes: 12"), WELD)) == redundant(held(mesh("modes: 8, held: [tip]"), WELD)) == []


def constrained(text):
    """(k,) rad/s of a rig without joints that move freely: the modes that its loops leave."""
    model = rig(text).plant.model
    G = np.asarray(model.equations.constraint_jacobian(np.zeros(model.nv)), dtype=float)
    free = null_space(G, 1e-10)
    (link,) = [link.elastic for link in model.mechanism.links if link.elastic is not None]
    mass = np.asarray(model.mass_matrix(np.zeros(model.nv)), dtype=float)
    return np.sqrt(eigh(free.T @ link.stiffness @ free, free.T @ mass @ free, eigvals_only=True))


@pytest.mark.parametrize(
    ("loop", "tip", "modes", "roots"),
    [
        (HINGE, ", tip_mass: 1e4", 3, (3.926602, 7.068583)),
        (WELD, ", tip_mass: 1e4, tip_inertia: 1e4", 4, (4.730041, 7.853205)),
    ],
)
def test_a_heavy_body_at_the_tip_gives_the_modes_of_a_tip_that_is_held(loop, tip, modes, roots):
    """Modes of a cantilever with it are the static shapes of the tip, and the modes of a beam that is held there."""
    text = held(beam(f"bend_y: {modes}", more=f"{tip}, stiffening: false"), loop)
    assert constrained(text) == pytest.approx(np.square(roots), rel=1e-4)
    without = constrained(held(beam(f"bend_y: {modes}", more=", stiffening: false"), loop))
    assert without[0] > 1.005 * roots[0] ** 2


def test_held_interfaces_have_the_vibrations_of_the_body_that_is_held_there():
    """Against the whole mesh with both ends held; the lowest modes of the body with a free tip are far from it."""
    _, mass, stiffness = beam_mesh(8)
    inner = np.ix_(*[np.arange(6, mass.shape[0] - 6)] * 2)
    exact = np.sqrt(eigh(stiffness.toarray()[inner], mass.toarray()[inner], eigvals_only=True))
    found = constrained(held(mesh("modes: 10, held: [tip]"), WELD))
    within = 2e-4  # the square of thickness over length, which the mass of modes has as its error
    assert LENGTH == 1.0 and found == pytest.approx(exact[:4], rel=within)
    assert constrained(held(mesh("modes: 10"), WELD))[0] > 1.1 * exact[0]
