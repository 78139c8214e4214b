"""Links and joints must be one tree; every way of not being one is told with its line."""

from dataclasses import replace

import pytest

from cosim.errors import InputErrors, Place
from cosim.multibody.description import Joint, Link, Mimic, Pose
from cosim.multibody.findings import Findings
from cosim.multibody.graph import build_mechanism, depth_first


def links(names):
    """One link per letter, on lines 1, 2, …"""
    return [Link(name, place=Place("f", line)) for line, name in enumerate(names, 1)]


def joints(*ends):
    """Joints from strings like "j:ab" (name, parent, child), on lines 11, 12, …"""
    named = [end.split(":") for end in ends]
    return [
        Joint(name, "revolute", pair[0], pair[1], Pose.identity(), place=Place("f", line))
        for line, (name, pair) in enumerate(named, 11)
    ]


def led(joint, leader, multiplier=1.0, offset=0.0):
    return replace(joint, mimic=Mimic(leader, multiplier, offset))


def build(parts, moving):
    return build_mechanism("m", parts, moving, Findings())


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
    unread = Joint("j", "revolute", "", "b", Pose.identity(), place=Place("f", 11))
    findings = Findings()
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
            ["f:12: joints 'j' -> 'i' -> 'j' mimic each other in a loop; let one of them move on its own"],
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


def test_mistakes_come_in_the_order_of_their_lines():
    findings = Findings()
    findings.error("late", Place("f", 20))
    findings.error("early", Place("f", 1))
    with pytest.raises(InputErrors) as caught:
        build_mechanism("m", links("aa"), [], findings)
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["1", "2", "20"]
