"""Runs in real time in Foxglove: a client of its protocol finds channels, samples, the mechanism and parameters."""

import json
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from mcap.reader import make_reader

from cosim.apps.foxglove.bridge import NO_VIEW
from cosim.apps.foxglove.command import FoxgloveAddress, open_bridge
from cosim.apps.foxglove.parameters import REFUSED, RunParameters
from cosim.core.access.guarded_server import address_of
from cosim.output.client import connect
from tests.foxglove.client import FoxgloveClient
from tests.kit.foxglove import foxglove_messages, matrix, message_class
from tests.kit.rigs import rig_in
from tests.kit.running import Running

RIG = """
name: arm
mechanism:
  bodies:
    - {name: upper, joint: a, axis: [0, 1, 0], mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.02, 0.02]}
    - {name: fore, joint: b, axis: [0, 0, 1], origin: {xyz: [0.4, 0, 0], rpy: [0.3, 0, 0]}, mass: 1 kg,
       com: [0.2, 0, 0], inertia: [0.01, 0.02, 0.02]}
joints: {all: {actuator: {type: ideal}}}
controllers:
  - {name: hold, type: pd_gravity, kp: 100, kd: [5, 3], trajectory: {type: sine, amplitude: 0.2, frequency: 1 Hz}}
schedule: {step: 5 ms, duration: 600, realtime: {warm_up: 0 s}}
"""


def arm(folder, *settings):
    sockets = f"telemetry.publish=ipc://{folder}/stream", f"telemetry.control=ipc://{folder}/control"
    return rig_in(folder, RIG, *sockets, *settings)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The folder of a run whose file is no rig any more; in the end its parameters are what they were."""
    folder = tmp_path_factory.mktemp("run")
    running = Running(arm(folder))
    with running.client() as client:
        client.status()
    (folder / "rig.yaml").write_text("no rig at all: [")
    yield folder
    assert running.stop().changes == ()


@contextmanager
def bridged(folder, host="127.0.0.1", sets=True):
    """A client of a bridge that runs in a thread."""
    ended = threading.Event()
    with open_bridge(f"ipc://{folder}/stream", FoxgloveAddress(host, 0, sets=sets)) as opened:

        def work():
            while not ended.is_set():
                opened.bridge.step()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        client = FoxgloveClient(address_of(opened.listener, opened.access, "ws"))
        try:
            yield client
        finally:
            client.close()
            ended.set()
            thread.join(10.0)


def message_of(event):
    return json.loads(event.data)["message"]


def values_of(client, number):
    """Parameters of the reply to this request."""
    (reply,) = client.until(lambda: [text for text in client.of("parameterValues") if text.get("id") == number])
    return {item["name"]: item["value"] for item in reply["parameters"]}


def stated(client, number):
    """The message of the status with this number; on a busy machine there may be others."""
    return client.until(lambda: [text for text in client.of("status") if text["id"] == number])[0]["message"]


def test_a_run_is_shown_as_its_recording_and_tuned(tmp_path, said):
    rig = arm(tmp_path)
    running = Running(rig, record=tmp_path / "a.mcap")
    with bridged(tmp_path) as client:
        client.until(lambda: "/joint_states" in client.channels)
        client.subscribe(*client.channels)
        client.until(lambda: len(client.of_topic("/tf")) > 10 and client.of_topic("/scene"))
        check_motion(rig, client)

        client.send("getParameters", parameterNames=[], id="all")
        assert values_of(client, "all") == {"hold.kp": [100.0, 100.0], "hold.kd": [5.0, 3.0]}
        client.send("setParameters", parameters=[{"name": "hold.kp", "value": [150, 90.5]}], id="set")
        assert values_of(client, "set") == {"hold.kp": [150.0, 90.5]}
        with connect(rig.run_spec.telemetry.control, timeout=60.0) as control:
            assert control.get() == {"hold.kp": [150.0, 90.5], "hold.kd": [5.0, 3.0]}

        both = [{"name": "hold.kd", "value": [4, 4]}, {"name": "hold.kp", "value": [-1, 90]}]
        client.send("setParameters", parameters=both, id="bad")
        assert values_of(client, "bad") == {"hold.kp": [150.0, 90.5], "hold.kd": [5.0, 3.0]}
        (status,) = client.until(lambda: [text for text in client.of("status") if text["id"] == REFUSED])
        assert status["level"] == 2
        said(status["message"])
        # on a busy machine there are events of late ticks too
        (event,) = client.until(lambda: [text for text in map(message_of, client.of_topic("/log")) if "set by" in text])
        assert event == "hold.kp = [150, 90.5] (was 100), set by 'Foxglove'"
        # what others set is published
        client.send("subscribeParameterUpdates", parameterNames=["hold.kp"])
        client.send("getParameters", parameterNames=["hold.kp"], id="subscribed")
        values_of(client, "subscribed")  # requests are taken in their order
        with connect(rig.run_spec.telemetry.control, timeout=60.0) as control, control.control():
            control.set({"hold.kp": 77.0})

        def published():
            items = [item for text in client.of("parameterValues") for item in text["parameters"]]
            return [item["value"] for item in items if item["name"] == "hold.kp"]

        client.until(lambda: [77.0, 77.0] in published() or 77.0 in published())
        channels = dict(client.channels)
    run = running.stop()
    assert [change.name for change in run.changes] == ["hold.kp", "hold.kp"]
    with open(tmp_path / "a.mcap", "rb") as file:
        summary = make_reader(file).get_summary()
    assert len([each for each in foxglove_messages(tmp_path / "a.mcap") if each.topic == "/tf"]) > 10
    recorded = {channel.topic: summary.schemas[channel.schema_id].name for channel in summary.channels.values()}
    assert {topic: channel["schemaName"] for topic, channel in channels.items()} == {
        topic: name for topic, name in recorded.items() if topic != "/changes"
    }


def check_motion(rig, client):
    """Transforms against forward kinematics at the positions of the same time; shapes; joint states."""
    samples = {
        joint: {each.log_ns: json.loads(each.data) for each in client.of_topic(f"/joints/{joint}")} for joint in "ab"
    }
    checked = 0
    for message in client.of_topic("/tf"):
        if not all(message.log_ns in samples[joint] for joint in "ab"):
            continue  # the last one
        q = np.array([samples[joint][message.log_ns]["position"] for joint in "ab"])
        transforms = message_class("FrameTransforms").FromString(message.data).transforms
        assert [each.child_frame_id for each in transforms] == ["upper", "fore"]
        for each in transforms:
            assert each.parent_frame_id == "base"
            np.testing.assert_allclose(matrix(each), rig.plant.model.frame_pose(q, each.child_frame_id), atol=1e-9)
        checked += 1
    assert checked > 5
    entities = message_class("SceneUpdate").FromString(client.of_topic("/scene")[0].data).entities
    assert {entity.frame_id for entity in entities} == {"upper", "fore"}
    states = next(each for each in client.of_topic("/joint_states") if each.log_ns in samples["b"])
    joints = message_class("JointStates").FromString(states.data).joints
    assert [(joint.name, joint.position) for joint in joints] == [
        (name, samples[name][states.log_ns]["position"]) for name in "ab"
    ]


@pytest.mark.parametrize("options", [{"host": "0.0.0.0"}, {"sets": False}], ids=["the network", "by default"])
def test_parameters_are_read_only(served, said, options):
    with bridged(served, **options) as client:
        client.until(lambda: "/joint_states" in client.channels)
        client.send("setParameters", parameters=[{"name": "hold.kp", "value": 3.0}], id="set")
        assert values_of(client, "set") == {"hold.kp": [100.0, 100.0]}
        said(stated(client, REFUSED))


def test_without_its_file_a_rig_is_shown_and_what_is_no_value_changes_nothing(served, said):
    with bridged(served) as client:
        client.until(lambda: "/joint_states" in client.channels)
        client.subscribe(*client.channels)
        client.until(lambda: client.of_topic("/tf") and client.of_topic("/scene"))
        assert not client.of("status")
        for value in ({"x": 1.0}, "many", [1.0, 2.0, 3.0]):
            client.texts.clear()
            client.send("setParameters", parameters=[{"name": "hold.kp", "value": value}], id="set")
            assert values_of(client, "set") == {"hold.kp": [100.0, 100.0]}
            said(stated(client, REFUSED), r"ipc:\S*control")


def test_a_set_before_the_first_schema_has_its_own_reason(said):
    """What the run has is not known then; a schema without a control socket may come from a run that begins."""
    reasons = []
    parameters = RunParameters(None, refused="")
    parameters.report = lambda what, level, number: reasons.append(what)
    assert parameters.set({"hold.kp": 3.0}) == {}
    parameters.learn({"parameters": {}, "control": None})
    assert parameters.set({"hold.kp": 3.0}) == {}
    said(reasons)


def test_the_next_run_is_a_session_of_its_own(tmp_path, said):
    """The first one publishes no positions: its mechanism is not shown."""
    first = Running(arm(tmp_path, 'telemetry.signals=["*/effort"]'))
    with bridged(tmp_path) as client:
        said(stated(client, NO_VIEW))
        client.until(lambda: "/joints/b" in client.channels)
        assert "/tf" not in client.channels
        before = client.of("serverInfo")[-1]["sessionId"]
        first.stop()
        second = Running(arm(tmp_path, 'telemetry.signals=["a/*"]'))
        client.until(lambda: client.of("serverInfo")[-1]["sessionId"] != before)
        client.until(lambda: "/joints/b" not in client.channels and "/joints/a" in client.channels)
        second.stop()


def test_silence_is_stated(tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.apps.foxglove.bridge.GONE_TIMEOUT", 0.1)
    with bridged(tmp_path) as client:
        status = client.until(lambda: client.of("status"))[0]
        assert (status["message"], status["level"]) == ("nothing comes from the run any more", 1)
