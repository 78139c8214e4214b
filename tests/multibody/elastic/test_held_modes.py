"""Elastic links in closed loops: modes that the loops hold, and links with enough of them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh, null_space
from scipy.sparse import save_npz

from tests.kit.command import Command
from tests.multibody.assembled import mistake, redundant, rig
from tests.multibody.elastic_files.meshes import LENGTH, beam_mesh

AT = "rig.yaml:7 mechanism.loops[0]: "
BEAM = "length: 1, stiffness: {mass: 1, EI: [1, 1], EA: 1e4}"
HELD = "give the beam more modes of this kind than directions are held, or other ends"
SHORTENING = (
    f"{AT}'pin' holds 'bar' along its axis, which keeps its length: it cannot bend; give the beam a mode of stretch and"
    " a tip that is not clamped in its ends, or stiffening: false"
)
HINGE, WELD, SLOT = "axis: [0, 0, 1]", "type: fixed", "type: prismatic, axis: [1, 0, 0]"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


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


def holds(*modes):
    they = "this mode" if len(modes) == 1 else "these modes"
    names = ", ".join(f"'bar.{mode}'" for mode in modes)
    return f"{AT}'pin' holds {names}: {they} cannot move; {HELD}"


@pytest.mark.parametrize(
    ("source", "loop", "message"),
    [
        (beam("bend_y: 1"), HINGE, holds("bend_y_1")),
        (beam("bend_z: 2"), HINGE, holds("bend_z_1", "bend_z_2")),
        (beam("bend_y: 3, stretch: 1, bend_z: 1"), HINGE, holds("bend_z_1")),
        (beam("bend_y: 2, stretch: 1"), WELD, holds("bend_y_1", "bend_y_2")),
        (beam("bend_y: 2"), HINGE, SHORTENING),
        (beam("bend_y: 3"), WELD, SHORTENING),
        (beam("bend_y: 2", "clamped, pinned"), HINGE, SHORTENING),
        (beam("bend_y: 2", "clamped, clamped"), WELD, SHORTENING),
        (beam("bend_y: 2, stretch: 2", "clamped, clamped"), WELD, SHORTENING),
    ],
)
def test_a_beam_with_too_few_modes_for_its_loop(source, loop, message, capsys, monkeypatch):
    assert mistake(held(source, loop)) == message
    code, _, (line,) = Command(capsys, monkeypatch)("check", "rig.yaml")
    assert (code, line) == (2, message)


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
    assert mistake(held(beam("bend_y: 1"), HINGE, HINGE)) == SHORTENING
    turned = "joints: {bar: {prescribed: {type: sine, amplitude: 1 deg, frequency: 1 Hz, ramp: 1 s}}}\n"
    assert mistake(held(source, HINGE, HINGE, turned)) == holds("bend_y_1")


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


def test_a_table_with_too_few_modes():
    said = f"{AT}'pin' holds 'bar.mode_1': this mode cannot move; "
    fix = "add modes to the table that move this place otherwise, or take this one out"
    assert mistake(held(table())) == said + fix
    source = table(second_order=[[[[0.0, 0, 0]]], [[[-0.2, 0, 0]]], [[[-1.2, 0, 0]]]])
    along = "add a mode along the axis to the table, or leave out second_order"
    ball = "type: prismatic, axis: [0, 1, 0]"
    said = f"{AT}'pin' holds 'bar' along its axis, which keeps its length: it cannot bend; {along}"
    assert mistake(held(source, ball)) == said


def test_functions_with_too_few_modes():
    Path("bar.py").write_text(
        "import numpy as np\n"
        "from cosim.multibody.elastic.shape_functions import ShapeFunctions\n"
        "from cosim.types import params\n\n\n@params\nclass Params:\n    pass\n\n\n"
        "def load(params):\n"
        "    def linear(x):\n        return np.array([[0.0, x**2, 0.0]])\n\n"
        "    return ShapeFunctions(1.0, lambda x: 1.0, (('bend', 'm'),), linear, [[4.0]])\n"
    )
    said = f"{AT}'pin' holds 'bar.bend': this mode cannot move; "
    assert mistake(held("shapes: {type: bar.py}")) == said + "return more shapes that move this place, or not this one"


def mesh(options):
    position, mass, stiffness = beam_mesh(8)
    save_npz("M.npz", mass)
    save_npz("K.npz", stiffness)
    rows = [f"{k},{x},{y},{z}" for k, (x, y, z) in enumerate(position, 1)]
    Path("nodes.csv").write_text("\n".join(["node,x,y,z", *rows]) + "\n")
    files = "mass: M.npz, stiffness: K.npz, nodes: nodes.csv, root: [1], interfaces: {tip: [9]}"
    return f"finite_elements: {{{files}, {options}}}"


def test_finite_elements_with_too_few_modes():
    """The lowest four bend, and the weld holds them all."""
    said = mistake(held(mesh("modes: 4"), WELD))
    modes = ", ".join(f"'bar.mode_{k}'" for k in (1, 2, 3, 4))
    fix = "name the interface in held, with more than 6 modes for each that is there"
    assert said == f"{AT}'pin' holds {modes}: these modes cannot move; {fix}"
    few = "6 modes are too few for 6 held motions of interfaces, which leave it none to bend; give 7 modes or more"
    assert mistake(held(mesh("modes: 6, held: [tip]"), WELD)) == (
        f"rig.yaml:5 mechanism.elastic[0].finite_elements: {few}"
    )
    assert redundant(held(mesh("modes: 12"), WELD)) == []
    assert redundant(held(mesh("modes: 8, held: [tip]"), WELD)) == []


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
    """Modes of a cantilever with it are the static shapes of the tip, and those of a beam that is held there."""
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
