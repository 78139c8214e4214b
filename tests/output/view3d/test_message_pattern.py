"""Messages that numpy fills in, as the Protobuf library reads them."""

import numpy as np

from cosim.core.recordings.protobuf_wire import part
from cosim.output.view3d.message_pattern import constant, joined, number, time, within
from tests.kit.foxglove import message_class


def test_numbers_and_times_come_back_to_the_bit():
    pattern = joined(time(1), within(2, constant(part(1, "elbow")), number(2), number(5)))
    stamps = np.array([0, 999_999_999, 1_000_000_000, 1_795_588_423_330_021_012, 2**33 * 10**9 + 1])
    numbers = np.random.default_rng(3).standard_normal((len(stamps), 2))
    numbers[0] = np.inf, -0.0
    for data, stamp, row in zip(pattern.filled(stamps, numbers), stamps.tolist(), numbers, strict=True):
        states = message_class("JointStates").FromString(data)
        (joint,) = states.joints
        assert states.timestamp.ToNanoseconds() == stamp
        assert joint.name == "elbow"
        assert np.array([joint.position, joint.effort]).tobytes() == row.tobytes()
        assert not joint.HasField("velocity")


def test_every_part_of_a_repeated_field_has_the_time():
    pattern = joined(*(within(1, time(1), constant(part(3, name)), within(4, number(2))) for name in ("a", "b" * 200)))
    (data,) = pattern.filled(np.array([1_500_000_000]), np.array([[3.0, 4.0]]))
    transforms = message_class("FrameTransforms").FromString(data).transforms
    assert [each.child_frame_id for each in transforms] == ["a", "b" * 200]
    assert [each.translation.y for each in transforms] == [3.0, 4.0]
    assert {each.timestamp.ToNanoseconds() for each in transforms} == {1_500_000_000}
