"""Redundant constraint rows: which are found, and which are kept when constraints are released."""

import json
from pathlib import Path

import numpy as np
import pytest

from cosim.mechanics.multibody.assembly import find_redundant
from cosim.mechanics.multibody.constrained_dynamics import groups, least_norm
from tests.multibody.assembled import folder, redundant, rig

__all__ = ["folder"]


THREE_CRANKS = """\
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: c1, mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: plate, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.2, 0, 0]}}
    - {name: c2, mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01], parent: base, origin: {xyz: [0.3, 0, 0]}}
    - {name: c3, mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01], parent: base, origin: {xyz: [0.6, 0, 0]}}
  loops:
    - {name: p2, parent: c2, child: plate, origin: {xyz: [0.2, 0, 0]}, child_origin: {xyz: [0.3, 0, 0]}}
    - {name: p3, parent: c3, child: plate, origin: {xyz: [0.2, 0, 0]}, child_origin: {xyz: [0.6, 0, 0]}}
joints:
  c1: {initial: {position: 1}}
  c2: {initial: {guess: 1}}
  c3: {initial: {guess: 1}}
  plate: {initial: {guess: -1}}
"""


def test_a_third_crank_makes_one_row_redundant():
    rows = [row for row in redundant(THREE_CRANKS) if not row.endswith(("force_z", "moment_x", "moment_y"))]
    assert len(rows) == 1 and rows[0].startswith("p3/force_")
    run = rig(THREE_CRANKS + "schedule: {duration: 0.3}\n").run()
    np.testing.assert_allclose(run["c3/position"], run["c1/position"], atol=1e-9)


@pytest.mark.parametrize("released", ["p2", "p3"])
def test_rows_redundant_to_a_released_constraint_stay_active(released):
    run = rig(f"{THREE_CRANKS}events: [{{do: release, of: {released}, at: 0.1}}]\nschedule: {{duration: 0.3}}\n").run()
    other = {"p2": "p3", "p3": "p2"}[released]
    assert run[f"{other}/violation"].max() < 1e-9
    assert not run[f"{released}/force_x"][run.t > 0.1].any()


def test_rows_that_depend_on_a_released_constraint_are_kept():
    plant = rig(THREE_CRANKS).plant
    model, free = plant.full_model, np.zeros(plant.full_model.nv, dtype=bool)
    names = [
        {model.constraint_rows[r] for r in find_redundant(model, plant.start.q, free, released=released)}
        for released in ((), ("p2",), ("p3",), ("p2", "p3"))
    ]
    assert len(names[0]) == 7 and len(names[3]) == 6
    # what comes last relies on what lasts
    assert {row for row in names[1] if row.endswith(("force_x", "force_y"))} <= {"p2/force_x", "p2/force_y"}
    assert names[2] == names[0]


def ladder(cells):
    """Uprights on the ground with a bar between each and the next."""
    figures = "mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01]"
    bodies, loops, joints = [f"{{name: a0, {figures}}}"], [], ["a0: {initial: {guess: 90 deg}}"]
    for k in range(1, cells + 1):
        bodies.append(f"{{name: t{k}, parent: a{k - 1}, {figures}, origin: {{xyz: [0.2, 0, 0]}}}}")
        bodies.append(f"{{name: a{k}, parent: base, {figures}, origin: {{xyz: [{0.3 * k}, 0, 0]}}}}")
        frames = "origin: {xyz: [0.3, 0, 0]}, child_origin: {xyz: [0.2, 0, 0]}"
        loops.append(f"{{name: l{k}, parent: t{k}, child: a{k}, {frames}}}")
        joints += [f"t{k}: {{initial: {{guess: -80 deg}}}}", f"a{k}: {{initial: {{guess: 80 deg}}}}"]
    listed = ["\n".join(f"    - {item}" for item in items) for items in (bodies, loops)]
    return f"mechanism:\n  bodies:\n{listed[0]}\n  loops:\n{listed[1]}\njoints:\n" + "".join(f"  {j}\n" for j in joints)


def test_many_loops():
    plant = rig(ladder(12)).plant
    uprights = plant.start_positions[[0, *range(2, 25, 2)]]
    assert np.ptp(uprights) < 1e-9 and 1.39 < uprights[0] < 1.58
    assert len(plant.start.redundant) == 3 * 12


DOOR = """\
mechanism:
  loop_closure: {elimination: HOW}
  bodies: [{name: door, mass: 10 kg, com: [0.4, 0, 0], inertia: [0.5, 0.5, 1], damping: 0.2}]
  loops: [{name: upper, parent: base, child: door, origin: {xyz: [0, 0, 1]}, child_origin: {xyz: [0, 0, 1]}}]
joints: {door: {initial: {velocity: 1}}}
schedule: {duration: 0.1}
"""


@pytest.mark.parametrize("elimination", ["direct", "nested"])
def test_a_mechanism_whose_rows_are_all_redundant(elimination):
    """A door on two coaxial hinges turns as on one; the reactions of the second one are 0."""
    text = DOOR.replace("HOW", elimination)
    assert len(redundant(text)) == 5
    door = rig(text)
    run = door.run()
    slowing = 0.2 / (1.0 + 10.0 * 0.4**2)
    np.testing.assert_allclose(run["door/velocity"], np.exp(-slowing * run.t), rtol=1e-9)
    model = door.plant.model
    states = np.full((3, 1), 0.3), np.full((3, 1), 0.5), np.full((3, 1), 0.7)
    for given in (states, tuple(x[0] for x in states)):
        np.testing.assert_allclose(model.forward_dynamics(*given), np.full(given[0].shape, 0.7 / 2.6), rtol=1e-12)
        assert not model.reactions(*given).any()
    for row in model.constraint_rows:
        assert not run[row].any()


@pytest.mark.parametrize("line", ["check", "run --json door.json", "derive --graph"])
def test_commands_on_a_mechanism_whose_rows_are_all_redundant(line, command):
    Path("door.yaml").write_text(DOOR.replace("HOW", "auto"))
    name, *options = line.split()
    code, _, err = command(name, "door.yaml", *options)
    assert (code, err) == (0, [])


TRUSS = """\
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: A, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: B, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], parent: base, origin: {xyz: [0.4, 0, 0]}}
    - {name: C, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], parent: base, origin: {xyz: [0.2, 0.6, 0]}}
  loops:
    - {name: ab, parent: A, child: B, origin: {xyz: [0.4, 0, 0]}, child_origin: {xyz: [0.4, 0, 0]}}
    - {name: ac, parent: A, child: C, origin: {xyz: [0.4, 0, 0]}, child_origin: {xyz: [0.25358983848622454, 0, 0]}}
joints:
  A: {initial: {guess: 1}}
  B: {initial: {guess: 2}}
  C: {initial: {guess: -1.5}}
schedule: {duration: 0.1}
"""


def test_a_structure_that_cannot_move_is_named_as_such(command, said):
    """A truss of three bars: two more than stay; it stands still and carries its weight."""
    rows = [row for row in redundant(TRUSS) if not row.endswith(("force_z", "moment_x", "moment_y"))]
    assert len(rows) == 1
    run = rig(TRUSS).run()
    for name in "ABC":
        np.testing.assert_allclose(run[f"{name}/velocity"], 0, atol=1e-12)
    np.testing.assert_allclose(run["A/position"], np.pi / 3, atol=1e-9)
    assert np.isfinite(run["ac/force_y"]).all() and np.abs(run["ab/force_y"]).max() > 0.1
    note = run.summary["immobile"]
    said(note)
    assert f"    note: {note}" in command("check", "rig.yaml")[1].splitlines()
    assert f"note     {note}" in command("run", "rig.yaml", "--json", "run.json")[1].splitlines()
    assert json.loads(Path("run.json").read_text())["immobile"] == note


@pytest.mark.parametrize(
    "text", [THREE_CRANKS, DOOR.replace("HOW", "auto"), TRUSS + "events: [{do: release, of: ac, at: 1}]\n"]
)
def test_what_can_move_or_will_is_no_structure(text):
    """Counting rows is not enough, and a loop that is released gives its freedom back."""
    assert rig(text).plant.immobile is None


def test_two_gears_between_two_wheels_block_them():
    wheels = "[{name: a, mass: 1, inertia: [1, 1, 1]}, {name: b, parent: base, mass: 1, inertia: [1, 1, 1]}]"
    gears = "[{name: g, type: gear, joints: [a, b], ratio: 1}, {name: h, type: gear, joints: [a, b], ratio: RATIO}]"
    text = f"mechanism:\n  bodies: {wheels}\n  constraints: {gears}\n"
    assert rig(text.replace("RATIO", "2")).plant.immobile.startswith("rig.yaml:3 mechanism.constraints[1]: 'h' takes")
    assert rig(text.replace("RATIO", "1")).plant.immobile is None


# --- reactions over dependent rows, group by group as in one system of all rows ---

RNG = np.random.default_rng(0)


def dense(G, redundant, multipliers, holds):
    """The same for all rows at once."""
    solved = [r for r in range(len(G)) if r not in redundant]
    independent, dependent = G[solved], G[list(redundant)]
    normal = independent @ independent.T + np.diag(1.0 - holds[solved])
    B = np.linalg.solve(normal, independent @ dependent.T).T
    shares = np.linalg.solve(np.eye(len(redundant)) + B @ B.T, B @ multipliers[solved])
    found = np.array(multipliers)
    found[solved] -= B.T @ shares
    found[list(redundant)] = shares
    return found


def coupled_rows(parts):
    """(G, redundant rows): of each part two random rows over four dofs, and two that depend on them; a part may share
    its last dof with the next."""
    G, redundant = np.zeros((4 * len(parts), 4 * len(parts) + 1)), []
    for k, shares in enumerate(parts):
        rows = RNG.normal(size=(2, 4 + shares))
        first = 4 * k
        G[first : first + 2, first : first + rows.shape[1]] = rows
        G[first + 2 : first + 4] = RNG.normal(size=(2, 2)) @ G[first : first + 2]
        redundant += [first + 2, first + 3]
    return G, redundant


def by_dof(G):
    return [{int(dof): row[dof] for dof in np.flatnonzero(row)} for row in G]


@pytest.mark.parametrize("parts", [(0,), (0, 0, 0), (1, 1, 0), (0, 1, 0)])
def test_groups_give_what_all_rows_together_give(parts):
    G, redundant = coupled_rows(parts)
    multipliers = RNG.normal(size=len(G))
    multipliers[redundant] = 0.0
    found = least_norm(by_dof(G), redundant, multipliers, np.ones(len(G)))
    np.testing.assert_allclose(found, dense(G, redundant, multipliers, np.ones(len(G))), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(G.T @ found, G.T @ multipliers, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found, np.linalg.lstsq(G.T, G.T @ multipliers, rcond=1e-12)[0], rtol=1e-8, atol=1e-10)


def test_released_rows_carry_nothing():
    G, redundant = coupled_rows((1, 0))
    holds = np.ones(len(G))
    holds[4:] = 0.0
    G *= holds[:, None]
    multipliers = RNG.normal(size=len(G)) * holds
    multipliers[redundant] = 0.0
    found = least_norm(by_dof(G), redundant, multipliers, holds)
    np.testing.assert_allclose(found, dense(G, redundant, multipliers, holds), rtol=1e-10, atol=1e-12)
    assert not found[4:].any()


def test_a_row_without_dofs_carries_nothing():
    found = least_norm([{0: 2.0}, {}], [1], np.array([3.0, 0.0]), np.ones(2))
    np.testing.assert_array_equal(found, [3.0, 0.0])


def test_groups_are_joined_by_later_rows():
    rows = [{0: 1.0}, {1: 1.0}, {}, {2: 1.0}, {0: 1.0, 1: 1.0}]
    assert groups(rows) == [[0, 1, 4], [3]]
