"""YAML sources: plain data, the line of every element, overrides, and what is said of broken files."""

import math
import os

import pytest

from cosim.errors import InputError
from cosim.rig.reading.yaml_source import LARGEST, load_yaml, override
from cosim.rig.reading.yaml_values import MOST_VALUES, dotted

RIG = """\
base: &gains
  kp: 1e-3
  on: off
joints:
  elbow:
    encoder: {cpr: 4096,
              delay: 1}
controllers:
  - name: arm
    kp: [1,
         2]
  - type: pid
    <<: *gains
    kp: 5
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def load(text):
        (tmp_path / "rig.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_yaml("rig.yaml")

    return load


@pytest.mark.parametrize(
    "text, value",
    [
        ("1e-3", 1e-3),
        ("-.5E+2", -50.0),
        ("7", 7),
        ("0x1F", 31),
        ("010", 10.0),
        ("-.inf", -math.inf),
        ("true", True),
        ("yes", "yes"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("'7'", "7"),
        ("1_000", "1_000"),
        ("~", None),
        ("", None),
    ],
)
def test_scalars_follow_yaml_1_2(load, text, value):
    read = load(f"a: {text}\n").data["a"]
    assert read == value
    assert type(read) is type(value)


def test_keys_are_always_text(load):
    assert load("on: 1\n5: 2\n~: 3\n").data == {"on": 1, "5": 2, "~": 3}


def test_aliases_and_merges(load):
    data = load(RIG).data
    assert data["controllers"][1] == {"type": "pid", "kp": 5, "on": "off"}
    assert load("a: &x {k: 1}\nb: *x\nc: *x\n").data == {"a": {"k": 1}, "b": {"k": 1}, "c": {"k": 1}}
    assert load("a: &x {k: 1, <<: {k: 2, m: 3}}\nb: *x\n").data["b"] == {"k": 1, "m": 3}


@pytest.mark.parametrize(
    "path, place",
    [
        ((), "rig.yaml:1"),
        (("joints", "elbow", "encoder"), "rig.yaml:6 joints.elbow.encoder"),
        (("joints", "elbow", "encoder", "delay"), "rig.yaml:7 joints.elbow.encoder.delay"),
        (("joints", "elbow", "driver"), "rig.yaml:5 joints.elbow.driver"),
        (("controllers", 0), "rig.yaml:9 controllers[0]"),
        (("controllers", 0, "kp", 1), "rig.yaml:11 controllers[0].kp[1]"),
        (("controllers", 1, "on"), "rig.yaml:3 controllers[1].on"),
        (("schedule", "step"), "rig.yaml:1 schedule.step"),
    ],
)
def test_places(load, path, place):
    assert str(load(RIG).place(path)) == place


def test_dotted():
    assert dotted(()) == ""
    assert dotted((0, "a", 1, 2, "b")) == "[0].a[1][2].b"


@pytest.mark.parametrize(
    "text, path, value",
    [
        ("joints.elbow.encoder.delay=0", ("joints", "elbow", "encoder", "delay"), 0),
        ("controllers.arm.kp=200", ("controllers", 0, "kp"), 200),
        ("controllers[0].kp[1]=1e-3", ("controllers", 0, "kp", 1), 1e-3),
        ("controllers.pid.kp=3 V", ("controllers", 1, "kp"), "3 V"),
        ("controllers.1.limit={a: [1]}", ("controllers", 1, "limit"), {"a": [1]}),
        ("schedule={step: 2ms}", ("schedule",), {"step": "2ms"}),
        ("joints.elbow.encoder=", ("joints", "elbow", "encoder"), None),
        ("base.note=a=b", ("base", "note"), "a=b"),
        ("base.a b=1", ("base", "a b"), 1),
        (" base.note =1", ("base", "note"), 1),
    ],
)
def test_override(load, text, path, value):
    source = load(RIG)
    changed = override(source, text)
    found = changed.data
    for part in path:
        found = found[part]
    assert found == value
    assert str(changed.place(path)) == f"--set {text}"
    assert str(changed.place((*path, "below"))) == f"--set {text}"
    assert changed.place(path[:-1]) == source.place(path[:-1])
    assert source.data == load(RIG).data


def test_an_override_makes_the_sections_it_needs(load):
    changed = override(load(RIG), "telemetry.stream.rate=5")
    assert changed.data["telemetry"] == {"stream": {"rate": 5}}
    assert str(changed.place(("telemetry", "stream", "rate"))) == "--set telemetry.stream.rate=5"


def test_the_later_override_wins(load):
    source = override(override(load(RIG), "controllers.arm.kp=7"), "controllers.arm={kp: 8}")
    assert source.data["controllers"][0] == {"kp": 8}
    assert str(source.place(("controllers", 0, "kp"))) == "--set controllers.arm={kp: 8}"


@pytest.mark.parametrize(
    "text, what",
    [
        ("controllers.arn.kp=2", "no 'arn' in controllers; did you mean 'arm'?"),
        ("controllers.7=2", "no '7' in controllers; known: arm, pid, 0, 1"),
        ("joints.elbow.encoder.delay.x=2", "no 'x' in joints.elbow.encoder.delay"),
        ("joints.elbow", "expected key=value, for example schedule.step=2ms"),
        ("=3", "expected key=value, for example schedule.step=2ms"),
        ("...=3", "expected key=value, for example schedule.step=2ms"),
        ("base.=3", "expected key=value, for example schedule.step=2ms"),
        ("controllers[0.kp=3", "expected key=value, for example schedule.step=2ms"),
        ("controllers0].kp=3", "expected key=value, for example schedule.step=2ms"),
        ("base[]=3", "expected key=value, for example schedule.step=2ms"),
        ("base.kp=[1", "broken YAML: expected ',' or ']', but got '<stream end>'; end the list before with ']'"),
        ("base.kp={a: 1, a: 2}", "key 'a' is given twice; the first is in line 1"),
    ],
)
def test_wrong_overrides(load, text, what):
    with pytest.raises(InputError) as caught:
        override(load(RIG), text)
    assert str(caught.value) == f"--set {text}: {what}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "rig.yaml: the file is empty; it needs at least a 'mechanism'"),
        ("# nothing\n", "rig.yaml: the file is empty; it needs at least a 'mechanism'"),
        ("\n- a\n", "rig.yaml:2: expected 'key: value' lines at the top level"),
        ("a: [1\nb: 2\n", "rig.yaml:2: broken YAML: expected ',' or ']', but got ':'; end the list before with ']'"),
        (
            "a:\n\tb: 1\n",
            "rig.yaml:2: broken YAML: found character '\\t' that cannot start any token; indent with spaces",
        ),
        ("a: *b\n", "rig.yaml:1: broken YAML: found undefined alias 'b'; name an anchor that comes before"),
        (
            "a: 1\n---\nb: 2\n",
            "rig.yaml:2: broken YAML: found another document; a rig is one document, take out the line ---",
        ),
        ("? [a]\n: 3\n", "rig.yaml:1: broken YAML: a key must be a single word"),
        ("a: b\nc: \x01\n", "rig.yaml:2: broken YAML: character '\\x01' is not allowed; take it out"),
        ("a: !foo 3\n", "rig.yaml:1 a: unknown tag '!foo'; leave it out"),
        ("a: !!int x\n", "rig.yaml:1 a: 'x' is no int"),
        ("a: &a [*a]\n", "rig.yaml:1 a[0]: the alias is inside its own anchor; take it out"),
        ("a: &a\n  - 1\n  - b: *a\n", "rig.yaml:3 a[1].b: the alias is inside its own anchor; take it out"),
        ("a: &a\n  b: 1\n  <<: *a\n", "rig.yaml:3 a: '<<' merges a mapping into itself; take it out"),
        ("a: &a\n  b: &b\n    <<: *a\n", "rig.yaml:3 a.b: '<<' merges a mapping into itself; take it out"),
        (
            "a: &a {k: 1}\nb: {<<: [*a, 3]}\n",
            "rig.yaml:2: broken YAML: expected a mapping or list of mappings for merging, but found scalar",
        ),
        ("a: " + 50 * "[" + 50 * "]", "rig.yaml:1: lists and mappings in more than 50 levels; take some out"),
        ("a: 1\nb: " + 1000 * "{c: ", "rig.yaml:2: lists and mappings in more than 50 levels; take some out"),
        ("a: 0x" + 5000 * "f", f"rig.yaml:1 a: '0x{58 * 'f'}…' is no int"),
        (b"\xff\xfe\xff", "rig.yaml: is UTF-16 text; save it as UTF-8"),
        ("a: 1\n".encode("utf-16-be"), "rig.yaml:1: broken YAML: character '\\x00' is not allowed; take it out"),
        ("a: 1\n".encode("utf-16"), "rig.yaml: is UTF-16 text; save it as UTF-8"),
        (b"a: 1\nb: \x89PNG", "rig.yaml:2: is not UTF-8 text; give the file of a rig, or save it as UTF-8"),
        (
            '<?xml version="1.0"?>\n<robot name="arm"/>\n',
            "rig.yaml:1: is XML, not YAML; a rig names its robot with `mechanism: {urdf: robot.urdf}`",
        ),
        (
            "a: 1\nb: {c: 1,\n    c: 2}\na: 2\na: 3\n",
            "rig.yaml:4: key 'a' is given twice; the first is in line 1\n"
            "rig.yaml:5: key 'a' is given twice; the first is in line 1\n"
            "rig.yaml:3 b: key 'c' is given twice; the first is in line 2",
        ),
    ],
)
def test_broken_files(load, text, message):
    with pytest.raises(InputError) as caught:
        load(text)
    assert str(caught.value) == message


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError) as caught:
        load_yaml(tmp_path / "absent.yaml")
    assert str(caught.value) == f"{tmp_path}/absent.yaml: no such file; check the path"
    with pytest.raises(InputError) as caught:
        load_yaml(tmp_path)
    assert str(caught.value) == f"{tmp_path}: is a folder; give the file of a rig"


def test_what_is_no_file_is_not_opened(tmp_path, monkeypatch):
    """A FIFO without a writer and /dev/zero would never end."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    for name, kind in {"fifo": "a FIFO", "/dev/zero": "a device"}.items():
        with pytest.raises(InputError) as caught:
            load_yaml(name)
        assert str(caught.value) == f"{name}: is {kind}; give the file of a rig"


def test_the_size_of_a_file_is_bounded(load):
    assert load("a: 1\n".ljust(LARGEST, " ")).data == {"a": 1}
    with pytest.raises(InputError) as caught:
        load("a: 1\n".ljust(LARGEST + 1, " "))
    what = "the file has 1 MB, a rig has at most 1 MB; use `repeat`, the joint `all` or a URDF"
    assert str(caught.value) == f"rig.yaml: {what}"


TOO_MANY = "more than 10000 values, each alias counted with its values; use `repeat`, the joint `all` or a URDF"


def nested(of, first):
    """Twenty anchors, each with nine aliases of the one before."""
    lines = [f"a{i}: &a{i} {of([f'*a{i - 1}'] * 9)}\n" for i in range(1, 20)]
    return f"a0: &a0 {first}\n" + "".join(lines)


@pytest.mark.parametrize(
    "text, line",
    [
        (nested(lambda aliases: f"[{', '.join(aliases)}]", "[x, y, z]"), 1),
        (nested(lambda aliases: "{" + ", ".join(f"k{j}: {a}" for j, a in enumerate(aliases)) + "}", "{x: 1}"), 2),
        ("a:\n" + "- 1\n" * 10_000, 10_000),
        ("a: {" + ", ".join(f"k{i}: 1" for i in range(10_000)) + "}", 1),
    ],
    ids=["lists of aliases", "mappings of aliases", "a long list", "a long mapping"],
)
def test_the_number_of_values_is_bounded(load, text, line):
    with pytest.raises(InputError) as caught:
        load(text)
    assert str(caught.value) == f"rig.yaml:{line}: {TOO_MANY}"


def test_as_many_values_as_a_file_may_have(load):
    assert len(load("a:\n" + "- 1\n" * (MOST_VALUES - 2)).data["a"]) == MOST_VALUES - 2


def test_merges_of_merges_are_merged_once(load):
    """Each mapping merges the one before ten times: without memory these are 10^20 merges."""
    text = "m0: &m0 {x: 1, y: 2}\n"
    text += "".join(f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 10)}], z: {i}}}\n" for i in range(1, 21))
    assert load(text).data["m20"] == {"x": 1, "y": 2, "z": 20}


def test_earlier_mappings_of_a_merge_win(load):
    text = "a: &a {k: 1, m: 1}\nb: &b {k: 2, n: 2}\nc: {<<: [*a, *b], m: 3}\nd: {m: 3, <<: [*b, *a]}\n"
    data = load(text).data
    assert data["c"] == {"k": 1, "m": 3, "n": 2}
    assert data["d"] == {"k": 2, "m": 3, "n": 2}
