"""`cosim derive --graph`: what it prints and draws of the graph of a mechanism."""

from itertools import pairwise
from pathlib import Path

import pytest

from cosim.apps.derive.graph_drawing import GAP, RADIUS, WAYPOINT_GAP, lay_out, plot_graph
from cosim.apps.derive.graph_report import adjacency, graph_lines, loop_path, read_mechanism
from cosim.apps.derive.layered import MAX_WIDTH
from cosim.apps.derive.picture import break_name
from cosim.mechanics.multibody.constraint_laws import distance
from cosim.mechanics.multibody.description.structure import structure_of
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Mimic,
    Pose,
)
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER

HERE = Pose.identity()
URDF = """\
<robot name="two">
  <link name="ground"/><link name="arm"/>
  <joint name="hinge" type="continuous"><parent link="ground"/><child link="arm"/></joint>
</robot>
"""


def joint(text, kind="revolute", **more):
    """From "name: parent child"."""
    name, parent, child = text.replace(":", "").split()
    return Joint(name, kind, parent, child, HERE, **more)


def mechanism(*joints, cuts=(), constraints=()):
    joints = tuple(joint(j) if isinstance(j, str) else j for j in joints)
    links = tuple(Link(name) for name in ("base", *(j.child for j in joints)))
    return Mechanism(
        "m", "base", links, joints, loops=tuple(LoopJoint(joint(c), HERE) for c in cuts), constraints=constraints
    )


def lines(m):
    return graph_lines(m, structure_of(m))


FOUR_BAR = mechanism("A: base crank", "B: crank rod", "D: base rocker", cuts=["C: rod rocker"])
CHAIN = mechanism(*(f"j{k}: {f'b{k - 1}' if k > 1 else 'base'} b{k}" for k in range(1, 41)), cuts=["c: b40 base"])


def test_the_four_bar_in_full(said):
    said(lines(FOUR_BAR))


def test_a_tree_has_no_cut_joints_and_no_bar(said):
    m = mechanism("a: base x", joint("b: x y", mimic=Mimic("a")), joint("weld: y tip", "fixed"))
    assert not any("|" in line or "loop " in line for line in lines(m))
    said(lines(m))


def test_the_adjacency_matrix_has_the_pairs_of_the_joints():
    for sample in ("four_bar", "andrews", "slider_crank", "floating_chain"):
        m = read_mechanism(FOLDER / "mechanisms" / f"{sample}.yaml")
        structure, joints = structure_of(m), [*m.joints, *(loop.joint for loop in m.loops)]
        pairs = {frozenset((joint.parent, joint.child)) for joint in joints}
        names = structure.bodies
        expected = [[int(frozenset((a, b)) in pairs and a != b) for b in names] for a in names]
        assert adjacency(structure).tolist() == expected


def test_constraints_take_their_rows_off_the_mobility(said):
    rod = Constraint("rod", distance(1.0), (("x", HERE), ("base", HERE)))
    said(lines(mechanism("a: base x", "b: x y", constraints=(rod,)))[-1])


def test_of_many_bodies_the_lists_only():
    said = lines(CHAIN)
    assert not any(line.startswith(("S, ", "T, ")) for line in said)
    assert said[2 + 41] == "40  b40   39 b39  j40    revolute    1"
    assert said[-3] == "  loop c: base → " + " → ".join(f"b{k}" for k in range(1, 41)) + " → c → base"
    twenty = mechanism(*CHAIN.joints[:20])
    assert any(line.startswith("T, ") for line in lines(twenty))


def test_a_root_alone(said):
    said(lines(mechanism()))


def test_a_loop_within_the_tree_starts_where_it_branches():
    s = structure_of(mechanism("a: base x", "b: x y", "c: x z", cuts=["d: z y", "e: x y"]))
    assert [loop_path(s, loop) for loop in s.loops] == ["x → z → d → y → x", "x → e → y → x"]


def test_the_command_reads_rigs_and_urdf_files(command):
    code, out, err = command("derive", "rig.yaml", "--graph")
    assert (code, err, out.splitlines()[0]) == (0, [], "swing: 1 body on base, 1 joint, no loops")
    Path("Two.URDF").write_text(URDF)
    code, out, err = command("derive", "Two.URDF", "--graph")
    assert (code, err, out.splitlines()[0]) == (0, [], "two: 1 body on ground, 1 joint, no loops")
    assert out.splitlines()[4] == "1  arm     0 ground  hinge  continuous    1"
    assert [path.name for path in Path().iterdir() if path.suffix not in (".yaml", ".URDF")] == []


def test_the_picture_is_written_named_and_the_same_every_time(command):
    code, out, _ = command("derive", "rig.yaml", "--graph", "a.svg")
    assert (code, out.splitlines()[-1]) == (0, "wrote    graph a.svg")
    command("derive", "rig.yaml", "--graph", "b.svg")
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()


WRONG = [
    "rig.yaml",
    "rig.yaml a.png",
    "none.yaml --graph",
    "none.urdf --graph",
    "rig.yaml --graph a.txt",
    "rig.yaml --graph no/a.png",
    "rig.png --graph rig.png",
    "folder.xml --graph",
]


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_one_line(command, said, words):
    Path("folder.xml").mkdir()
    said(command.refuses("derive", *words.split()))


def test_a_graph_too_large_to_draw_is_refused(tmp_path, said):
    file = tmp_path / "a.png"
    said(refusal(plot_graph, file, structure_of(mechanism(*(f"j{k}: base b{k}" for k in range(201)))), "m"))
    assert not file.exists()


SHAPES = {
    "four bar": FOUR_BAR,
    "chain": CHAIN,
    "star": mechanism(*(f"j{k}: base b{k}" for k in range(12))),
    "several joints of two bodies": mechanism("a: base x", cuts=["b: base x", "c: x base"]),
    "cut within a layer": mechanism("a: base x", "b: base y", "c: base z", cuts=["d: x z", "e: x y"]),
    "alone": mechanism(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_pictures_of_all_shapes_are_drawn(name, tmp_path):
    plot_graph(tmp_path / "a.svg", structure_of(SHAPES[name]), "<$m_1$>", name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text.count("stroke-dasharray") >= len(SHAPES[name].loops)


@pytest.mark.parametrize("name", SHAPES)
def test_bodies_and_cut_joints_that_pass_keep_apart(name):
    places = lay_out(structure_of(SHAPES[name])).places
    for one, p in places.items():
        for other, q in places.items():
            least = GAP if isinstance(one, int) and isinstance(other, int) else WAYPOINT_GAP
            assert one == other or abs(p[0] - q[0]) > 2 * RADIUS or abs(p[1] - q[1]) > least - 1e-9


def test_layers_follow_the_depth_and_a_cut_joint_goes_around_the_bodies():
    layout = lay_out(structure_of(mechanism("a: base x", "b: x y", "c: y z", cuts=["d: base z"])))
    assert layout.places[0][0] < layout.places[1][0] < layout.places[2][0] < layout.places[3][0]
    route = [leg.start for leg in layout.segments[4]] + [layout.segments[4][-1].end]
    assert route == [0, (4, 1), (4, 2), 3]
    assert layout.places[4, 1][0] == layout.places[1][0] and layout.places[4, 2][0] == layout.places[2][0]
    heights = [layout.places[k][1] for k in range(4)]
    assert max(heights) - min(heights) < 0.02  # the chain stays straight


def test_branches_are_ordered_so_that_cut_joints_do_not_cross_them():
    m = mechanism("a: base x", "b: base y", "c: base z", "d: x u", "e: y v", "f: z w", cuts=["g: u z"])
    s = structure_of(m)
    places = lay_out(s).places
    x, y, z, u, v, w = (places[s.bodies.index(name)][1] for name in "xyzuvw")
    assert not min(x, z) < y < max(x, z)
    assert (x - z) * (u - w) > 0 and (x - y) * (u - v) > 0


def test_long_chains_go_on_below():
    places = lay_out(structure_of(CHAIN)).places
    xs = [places[k][0] for k in range(41)]
    assert max(xs) - min(xs) < MAX_WIDTH
    directions = [1 if b > a else -1 for a, b in pairwise(xs) if a != b]
    assert {1, -1} == set(directions)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("elbow", "elbow"),
        ("wrist_3_link", "wrist_3_link"),
        ("shoulder_lift_joint", "shoulder_\nlift_joint"),
        ("averyveryverylongname", "averyveryverylongname"),
    ],
)
def test_long_names_are_broken_at_their_joints(name, lines):
    assert break_name(name) == lines


def test_the_graph_of_xacro_and_mjcf_files(command):
    body = '<body name="arm"><joint name="hinge"/><geom size="0.1"/></body>'
    Path("two.xml").write_text(f'<mujoco model="two"><worldbody>{body}</worldbody></mujoco>')
    Path("two.xacro").write_text(URDF.replace('"hinge"', "\"${'hin' + 'ge'}\""))
    for file in ("two.xml", "two.xacro"):
        out = command.prints("derive", file, "--graph")
        assert out.startswith("two: 1 body on ") and " hinge " in out
