"""Links and joints must form one tree; every violation is reported with its line."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.errors import InputErrors, SourceLocation
from cosim.multibody.constraint_laws import distance, gear
from cosim.multibody.description.diagnostics import Diagnostics
from cosim.multibody.description.topology import build_mechanism, depth_first
from cosim.multibody.mechanism import Constraint, Joint, Link, LoopJoint, Mimic, Pose, Spring


def links(names):
    """One link per letter, on lines 1, 2, …"""
    return [Link(name, place=SourceLocation("f", line)) for line, name in enumerate(names, 1)]


def joints(*ends):
    """Joints from strings like "j:ab" (name, parent, child), on lines 11, 12, …"""
    named = [end.split(":") for end in ends]
    return [
        Joint(name, "revolute", pair[0], pair[1], Pose.identity(), place=SourceLocation("f", line))
        for line, (name, pair) in enumerate(named, 11)
    ]


def led(joint, leader, multiplier=1.0, offset=0.0):
    return replace(joint, mimic=Mimic(leader, multiplier, offset))


def build(parts, moving):
    return build_mechanism("m", parts, moving, Diagnostics())


def messages(parts, moving):
    with pytest.raises(InputErrors) as caught:
        build(parts, moving)
    return str(caught.value).splitlines()


def test_file_order_is_kept_and_depth_first_puts_siblings_in_it():
    mechanism = build(links("abcdef"), joints("f:cf", "b:ab", "c:ac", "d:bd", "e:ce"))
    assert mechanism.root == "a"
    assert [link.name for link in mechanism.links] == list("abcdef")
    assert [joint.name for joint in mechanism.joints] == ["f", "b", "c", "d", "e"]
    assert [joint.name for joint in depth_first(mechanism)] == ["b", "d", "c", "f", "e"]


def test_one_link_is_a_tree():
    mechanism = build(links("a"), [])
    assert (mechanism.root, depth_first(mechanism)) == ("a", [])


def test_a_mimic_of_a_mimic_follows_the_joint_that_moves():
    x, y, z = joints("x:ab", "y:bc", "z:cd")
    followers = build(links("abcd"), [led(x, "y", 2, 1), led(y, "z", 3, 10), z]).joints
    assert [joint.mimic for joint in followers] == [Mimic("z", 6, 21), Mimic("z", 3, 10), None]


TREE_NEEDED = "a tree is needed; cut the loop at one of its joints"


@pytest.mark.parametrize(
    ("names", "ends", "expected"),
    [
        ("aa", [], ["f:2: link 'a' exists already (line 1); names must be unique"]),
        ("abc", ["j:ab", "j:ac"], ["f:12: joint 'j' exists already (line 11); names must be unique"]),
        ("aba", ["j:ab"], ["f:3: link 'a' exists already (line 1); names must be unique"]),
        ("ab", ["j:xb"], ["f:11: parent link 'x' does not exist; known: a, b"]),
        ("ab", ["j:ax"], ["f:11: child link 'x' does not exist; known: a, b"]),
        (
            ["base", "arm"],
            ["j:xy"],
            [
                "f:11: parent link 'x' does not exist; known: base, arm",
                "f:11: child link 'y' does not exist; known: base, arm",
            ],
        ),
        (
            "abc",
            ["i:ab", "j:ac", "k:bc"],
            [
                "f:13: link 'c' is the child of joints 'j' (line 12) and 'k':"
                " a tree is needed; cut the loop at one of them"
            ],
        ),
        (
            "ab",
            ["i:ab", "j:ab"],
            ["f:12: joints 'i' (line 11) and 'j' both connect link 'a' with link 'b'; keep one of them"],
        ),
        ("ab", ["i:ab", "j:ba"], [f"f:11: links 'a' -> 'b' -> 'a' form a loop: {TREE_NEEDED}"]),
        ("ab", ["j:bb"], [f"f:11: links 'b' -> 'b' form a loop: {TREE_NEEDED}"]),
        (
            "abcdef",
            ["i:bc", "j:cb", "k:cd", "l:ef", "m:fe"],
            [
                f"f:11: links 'b' -> 'c' -> 'b' form a loop: {TREE_NEEDED}",
                f"f:14: links 'e' -> 'f' -> 'e' form a loop: {TREE_NEEDED}",
            ],
        ),
        (
            "abcd",
            ["j:ab"],
            ["f:3: links 'a', 'c', 'd' have no parent: one root is needed; connect them with joints"],
        ),
    ],
)
def test_what_is_no_tree(names, ends, expected):
    assert messages(links(names), joints(*ends)) == expected


def test_a_joint_whose_ends_could_not_be_read_hides_what_follows_from_it():
    unread = Joint("j", "revolute", "", "b", Pose.identity(), place=SourceLocation("f", 11))
    findings = Diagnostics()
    findings.error("no parent", unread.place)
    with pytest.raises(InputErrors) as caught:
        build_mechanism("m", links("abc"), [unread], findings)
    assert str(caught.value) == "f:11: no parent"


@pytest.mark.parametrize(
    ("leaders", "expected"),
    [
        ({"i": "x"}, ["f:11: mimics joint 'x', which does not exist; known: j, k"]),
        ({"j": "j"}, ["f:12: mimics itself; name another joint"]),
        (
            {"i": "j", "j": "i", "k": "i"},
            ["f:12: joints 'j' -> 'i' -> 'j' mimic each other in a loop; make one of them independent"],
        ),
    ],
)
def test_mimics_that_lead_nowhere(leaders, expected):
    moving = joints("i:ab", "j:bc", "k:cd")
    followers = [led(joint, leaders[joint.name]) if joint.name in leaders else joint for joint in moving]
    assert messages(links("abcd"), followers) == expected


def test_a_mimic_of_a_fixed_joint():
    weld = Joint("weld", "fixed", "a", "b", Pose.identity())
    (follower,) = joints("j:bc")
    expected = ["f:11: mimics joint 'weld', which is fixed; name a joint that moves"]
    assert messages(links("abc"), [weld, led(follower, "weld")]) == expected


def test_errors_come_in_the_order_of_their_lines():
    findings = Diagnostics()
    findings.error("late", SourceLocation("f", 20))
    findings.error("early", SourceLocation("f", 1))
    with pytest.raises(InputErrors) as caught:
        build_mechanism("m", links("aa"), [], findings)
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["1", "2", "20"]


# --- couplings --------------------------------------------------------------------------------------------

HINGE, SLIDE, WELD = "revolute", "prismatic", "fixed"


def coupled(loops=(), constraints=(), springs=(), first=HINGE):
    """The chain a-b-c with joints i and j, and what couples it, all on line 20."""
    i, j = joints("i:ab", "j:bc")
    return build_mechanism("m", links("abc"), [replace(i, kind=first), j], Diagnostics(), loops, constraints, springs)


def loop(name="L", ends="ac", kind=HINGE, coordinates=False, x=0.0):
    pose = Pose(np.eye(3), np.array([x, 0.0, 0.0]))
    joint = Joint(name, kind, ends[0], ends[1], pose, place=SourceLocation("f", 20))
    return LoopJoint(joint, Pose.identity(), coordinates)


def rod(name="d", ends="ac"):
    frames = tuple((end, Pose.identity()) for end in ends)
    return Constraint(name, distance(1.0), frames, place=SourceLocation("f", 20))


def geared(*names):
    return Constraint("g", gear(2.0), joints=names, place=SourceLocation("f", 20))


def spring(name="s", ends="ac"):
    return Spring(name, ((ends[0], np.zeros(3)), (ends[1], np.zeros(3))), place=SourceLocation("f", 20))


def test_couplings_are_kept_in_their_order():
    parts = [loop("L"), loop("K", kind=SLIDE)], [rod(), geared("i", "j")], [spring()]
    mechanism = coupled(*parts)
    assert (mechanism.loops, mechanism.constraints, mechanism.springs) == tuple(map(tuple, parts))


def test_a_constraint_may_name_the_joint_of_a_loop_with_coordinates():
    constraint = geared("i", "L")
    assert coupled([loop(coordinates=True)], [constraint]).constraints == (constraint,)


def test_two_joints_side_by_side_are_allowed():
    assert len(coupled([loop("L", x=0.1), loop("K", x=0.2)]).loops) == 2


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"loops": [loop(ends="ax")]}, "link 'x' does not exist; known: a, b, c"),
        ({"constraints": [rod(ends="xa")]}, "link 'x' does not exist; known: a, b, c"),
        ({"springs": [spring(ends="ax")]}, "link 'x' does not exist; known: a, b, c"),
        ({"loops": [loop(ends="bb")]}, "couples link 'b' with itself; name two links"),
        ({"constraints": [rod(ends="bb")]}, "couples link 'b' with itself; name two links"),
        ({"springs": [spring(ends="bb")]}, "couples link 'b' with itself; name two links"),
        ({"loops": [loop("i")]}, "loop 'i' has the name of a joint (line 11); names must be unique"),
        ({"constraints": [rod("j")]}, "constraint 'j' has the name of a joint (line 12); names must be unique"),
        (
            {"loops": [loop("s")], "springs": [spring("s")]},
            "spring 's' has the name of a loop (line 20); names must be unique",
        ),
        ({"springs": [spring(), spring(ends="ab")]}, "spring 's' exists already (line 20); names must be unique"),
        ({"constraints": [geared("i", "x")]}, "names joint 'x', which does not exist; known: i, j"),
        ({"constraints": [geared("i", "i")]}, "names joint 'i' 2 times; name another one"),
        (
            {"constraints": [geared("i", "j")], "first": WELD},
            "names joint 'i', which is fixed; name a joint that moves",
        ),
        (
            {"loops": [loop()], "constraints": [geared("i", "L")]},
            "names joint 'L', which closes a loop without coordinates; give it 'coordinates: true'",
        ),
        (
            {"loops": [loop(kind=WELD)], "constraints": [geared("i", "L")]},
            "names joint 'L', which is fixed; name a joint that moves",
        ),
        ({"loops": [loop(ends="ab")]}, "duplicates joint 'i' (line 11); keep one of them"),
        ({"loops": [loop(), loop("K")]}, "duplicates joint 'L' (line 20); keep one of them"),
    ],
)
def test_couplings_that_do_not_fit(parts, expected):
    with pytest.raises(InputErrors) as caught:
        coupled(**parts)
    assert str(caught.value) == f"f:20: {expected}"


@pytest.mark.parametrize("role", ["leads", "follows"])
def test_a_joint_of_several_coordinates_and_mimics(role):
    i, j = joints("i:ab", "j:bc")
    ball, hinge = (i, j) if role == "leads" else (j, i)
    ball = replace(ball, kind="spherical")
    moving = [ball, led(hinge, "i")] if role == "leads" else [hinge, led(ball, "i")]
    expected = f"mimics joint 'i', but joint '{ball.name}' has 3 coordinates; both must have one"
    assert messages(links("abc"), moving) == [f"f:12: {expected}"]
