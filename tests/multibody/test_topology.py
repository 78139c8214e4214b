"""Links and joints must form one tree; every violation is reported with its line."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cosim.core.errors import InputErrors, SourceLocation
from cosim.mechanics.multibody.constraint_laws import distance, gear
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.topology import build_mechanism, depth_first
from cosim.mechanics.multibody.mechanism import Constraint, Joint, Link, LoopJoint, Mimic, Pose, Spring
from tests.kit.refusals import raised


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
    return str(raised(InputErrors, build, parts, moving)).splitlines()


def test_file_order_is_kept_and_depth_first_puts_siblings_in_it():
    mechanism = build(links("abcdef"), joints("f:cf", "b:ab", "c:ac", "d:bd", "e:ce"))
    assert mechanism.root == "a"
    assert [link.name for link in mechanism.links] == list("abcdef")
    assert [joint.name for joint in mechanism.joints] == ["f", "b", "c", "d", "e"]
    assert [joint.name for joint in depth_first(mechanism)] == ["b", "d", "c", "f", "e"]
    alone = build(links("a"), [])
    assert (alone.root, depth_first(alone)) == ("a", [])


def test_a_mimic_of_a_mimic_follows_the_joint_that_moves():
    x, y, z = joints("x:ab", "y:bc", "z:cd")
    followers = build(links("abcd"), [led(x, "y", 2, 1), led(y, "z", 3, 10), z]).joints
    assert [joint.mimic for joint in followers] == [Mimic("z", 6, 21), Mimic("z", 3, 10), None]


def within(joint, position):
    return bool(joint.lower <= position <= joint.upper)


@pytest.mark.parametrize("seed", range(20))
def test_a_leader_moves_exactly_where_all_that_follow_it_keep_their_limits(seed):
    """A chain of mimics and one beside it, by trial of every position of the leader."""
    random = np.random.default_rng(seed)
    moving = joints("x:ab", "y:bc", "z:cd", "w:de")
    for k in range(4):
        lower, upper, velocity = (-1.0, 1.0, 1.0) + np.array([-0.5, 0.5, 1.0]) * random.uniform(size=3)
        moving[k] = replace(moving[k], lower=lower, upper=upper, max_velocity=velocity)
    for k, leader in enumerate("yzz"):
        moving[[0, 1, 3][k]] = led(
            moving[[0, 1, 3][k]], leader, random.choice([-1, 1]) * random.uniform(0.3, 3.0), random.uniform(-0.3, 0.3)
        )
    findings = Diagnostics()
    found = {
        each.name: each
        for each in build_mechanism("m", links("abcde"), random.permutation(moving).tolist(), findings).joints
    }
    x, y, z, w = moving
    for position in np.linspace(-2.0, 2.0, 4001):
        of_y, of_w = (each.mimic.multiplier * position + each.mimic.offset for each in (y, w))
        of_x = x.mimic.multiplier * of_y + x.mimic.offset
        wanted = within(z, position) and within(y, of_y) and within(x, of_x) and within(w, of_w)
        assert within(found["z"], position) == wanted, position
    speeds = [z.max_velocity, y.max_velocity / abs(y.mimic.multiplier), w.max_velocity / abs(w.mimic.multiplier)]
    speeds.append(x.max_velocity / abs(x.mimic.multiplier * y.mimic.multiplier))
    assert found["z"].max_velocity == pytest.approx(min(speeds), rel=1e-12)
    changed = [getattr(found["z"], key) != getattr(z, key) for key in ("lower", "upper", "max_velocity")]
    assert len(findings.notes) == sum(changed) and not findings.warnings
    assert all("'z'" in note for note in findings.notes)


# limits of the joint that is followed (0 to 1) and of the follower, and its multiplier and offset
FOLLOWERS = {
    "narrower": ({"lower": 0.1, "upper": 0.4}, 0.5, 0.0),
    "the other way round": ({"lower": -0.4, "upper": -0.1}, -0.5, 0.0),
    "wider": ({"lower": -1.0, "upper": 2.0}, 1.0, 0.0),
    "by rounding": ({"lower": 0.0, "upper": 0.9999999999}, 1.0, 0.0),
    "no range": ({"lower": 0.0, "upper": 0.0}, 1.0, 0.0),
    "apart": ({"lower": 0.0, "upper": 1.0}, -1.0, 0.0),
    "apart by its offset": ({"lower": 0.0, "upper": 1.0}, 1.0, 3.0),
    "a velocity": ({"max_velocity": 0.1}, -2.0, 0.0),
    "a velocity of 0": ({"max_velocity": 0.0}, 1.0, 0.0),
    "one that stands still": ({"lower": 1.0, "upper": 2.0, "max_velocity": 1.0}, 0.0, 0.0),
}


@pytest.mark.parametrize("case", FOLLOWERS)
def test_limits_of_followers(case, said):
    limits, multiplier, offset = FOLLOWERS[case]
    i, j = joints("i:ab", "j:bc")
    findings = Diagnostics()
    follower = led(replace(j, **limits), "i", multiplier, offset)
    leader, _ = build_mechanism("m", links("abc"), [replace(i, lower=0.0, upper=1.0), follower], findings).joints
    said([f"{leader.lower:g} to {leader.upper:g}, {leader.max_velocity:g}", *findings.notes, *findings.warnings])


NO_TREES = {
    "a link twice": ("aa", []),
    "a joint twice": ("abc", ["j:ab", "j:ac"]),
    "a link twice beside a joint": ("aba", ["j:ab"]),
    "an unknown parent": ("ab", ["j:xb"]),
    "an unknown child": ("ab", ["j:ax"]),
    "two unknown links": (["base", "arm"], ["j:xy"]),
    "two parents": ("abc", ["i:ab", "j:ac", "k:bc"]),
    "two joints of the same links": ("ab", ["i:ab", "j:ab"]),
    "a loop of two": ("ab", ["i:ab", "j:ba"]),
    "a loop of one": ("ab", ["j:bb"]),
    "two loops": ("abcdef", ["i:bc", "j:cb", "k:cd", "l:ef", "m:fe"]),
    "several roots": ("abcd", ["j:ab"]),
}


@pytest.mark.parametrize("case", NO_TREES)
def test_what_is_no_tree(case, said):
    names, ends = NO_TREES[case]
    lines = messages(links(names), joints(*ends))
    assert all(re.match(r"f:\d+: ", line) for line in lines)
    said(lines)


def test_a_joint_whose_ends_could_not_be_read_hides_what_follows_from_it():
    unread = Joint("j", "revolute", "", "b", Pose.identity(), place=SourceLocation("f", 11))
    findings = Diagnostics()
    findings.error("no parent", unread.place)
    assert str(raised(InputErrors, build_mechanism, "m", links("abc"), [unread], findings)) == "f:11: no parent"


@pytest.mark.parametrize("leaders", [{"i": "x"}, {"j": "j"}, {"i": "j", "j": "i", "k": "i"}], ids=str)
def test_mimics_that_lead_nowhere(leaders, said):
    moving = joints("i:ab", "j:bc", "k:cd")
    followers = [led(joint, leaders[joint.name]) if joint.name in leaders else joint for joint in moving]
    said(messages(links("abcd"), followers))


@pytest.mark.parametrize(
    ("leading", "following"), [("fixed", "revolute"), ("spherical", "revolute"), ("revolute", "spherical")]
)
def test_joints_that_cannot_mimic_each_other(leading, following, said):
    i, j = joints("i:ab", "j:bc")
    said(messages(links("abc"), [replace(i, kind=leading), led(replace(j, kind=following), "i")]))


def test_errors_come_in_the_order_of_their_lines():
    findings = Diagnostics()
    findings.error("late", SourceLocation("f", 20))
    findings.error("early", SourceLocation("f", 1))
    lines = str(raised(InputErrors, build_mechanism, "m", links("aa"), [], findings)).splitlines()
    assert [line.split(":")[1] for line in lines] == ["1", "2", "20"]


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
    # a constraint may name the joint of a loop with coordinates, and two joints may be side by side
    assert coupled([loop(coordinates=True)], [of_loop := geared("i", "L")]).constraints == (of_loop,)
    assert len(coupled([loop("L", x=0.1), loop("K", x=0.2)]).loops) == 2


MISFITS = {
    "a loop to an unknown link": {"loops": [loop(ends="ax")]},
    "a constraint to an unknown link": {"constraints": [rod(ends="xa")]},
    "a spring to an unknown link": {"springs": [spring(ends="ax")]},
    "a loop of one link": {"loops": [loop(ends="bb")]},
    "a constraint of one link": {"constraints": [rod(ends="bb")]},
    "a spring of one link": {"springs": [spring(ends="bb")]},
    "a loop named as a joint": {"loops": [loop("i")]},
    "a constraint named as a joint": {"constraints": [rod("j")]},
    "a spring named as a loop": {"loops": [loop("s")], "springs": [spring("s")]},
    "a spring twice": {"springs": [spring(), spring(ends="ab")]},
    "a gear of an unknown joint": {"constraints": [geared("i", "x")]},
    "a gear of one joint": {"constraints": [geared("i", "i")]},
    "a gear of a fixed joint": {"constraints": [geared("i", "j")], "first": WELD},
    "a gear of a loop without coordinates": {"loops": [loop()], "constraints": [geared("i", "L")]},
    "a gear of a fixed loop": {"loops": [loop(kind=WELD)], "constraints": [geared("i", "L")]},
    "a loop beside a joint": {"loops": [loop(ends="ab")]},
    "a loop twice": {"loops": [loop(), loop("K")]},
}


@pytest.mark.parametrize("case", MISFITS)
def test_couplings_that_do_not_fit(case, said):
    (line,) = str(raised(InputErrors, coupled, **MISFITS[case])).splitlines()
    assert line.startswith("f:20: ")
    said(line)
