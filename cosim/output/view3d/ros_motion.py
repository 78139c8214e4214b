"""A mechanism as messages of ROS 2: transforms of its links, and the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cosim.core.recordings.cdr import CdrPattern, CdrWriter
from cosim.output.scene.scene import quaternions
from cosim.output.view3d.motion import ViewMessage, due_ticks
from cosim.output.view3d.view import View

TF, TF_STATIC, CLOCK = "/tf", "/tf_static", "/clock"
# topic -> message
ROS_VIEW_TOPICS = {TF: "tf2_msgs/TFMessage", TF_STATIC: "tf2_msgs/TFMessage", CLOCK: "rosgraph_msgs/Clock"}


class RosMotion:
    """The messages of one run, as `Motion` has them."""

    def __init__(self, view: View) -> None:
        self._view, self._period_ns, self._interval = view, 1e9 / view.rate, -1
        ground, *bodies = (body.name for body in view.scene.bodies)
        self._transforms = _transforms([(ground, body) for body in bodies])
        self._static = _transforms([(link.parent, link.name) for link in view.links])
        self._clock = CdrWriter().stamp().pattern

    def standing(self, stamp_ns: int, t_ns: int) -> Iterator[ViewMessage]:
        """What does not change: links at fixed places of their bodies. stamp_ns: since 1970."""
        if self._view.links:
            wxyz = np.array([link.pose.wxyz for link in self._view.links])
            positions = np.array([link.pose.position for link in self._view.links])
            (data,) = self._static.filled(np.array([stamp_ns]), _numbers(positions, wxyz).reshape(1, -1))
            yield ViewMessage(TF_STATIC, t_ns, data)

    def moving(self, stamps_ns: np.ndarray, t_ns: np.ndarray, rows: np.ndarray) -> Iterator[ViewMessage]:
        """See `Motion`."""
        due, self._interval = due_ticks(t_ns, self._period_ns, self._interval)
        if not len(due):
            return
        stamps, times = stamps_ns[due], t_ns[due]
        poses = self._view.link_poses(times, rows[due])
        numbers = _numbers(poses[..., 3], quaternions(poses[..., :3])).reshape(len(due), -1)
        clocks = self._clock.filled(stamps, np.empty((len(due), 0)))
        transforms = self._transforms.filled(stamps, numbers)
        for t, clock, transform in zip(times.tolist(), clocks, transforms, strict=True):
            yield ViewMessage(CLOCK, t, clock)
            yield ViewMessage(TF, t, transform)


def _numbers(positions: np.ndarray, wxyz: np.ndarray) -> np.ndarray:
    """(…, 7): x, y, z of a translation and x, y, z, w of a rotation."""
    return np.concatenate([positions, np.roll(wxyz, -1, axis=-1)], axis=-1)


def _transforms(frames: Sequence[tuple[str, str]]) -> CdrPattern:
    """tf2_msgs/TFMessage of (parent, child)."""
    message = CdrWriter().whole(len(frames))
    for parent, child in frames:
        message.header(parent).text(child).open_values(7)
    return message.pattern
