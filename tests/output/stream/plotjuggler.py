"""What PlotJuggler does with the frames of a ZeroMQ subscription, by its rules.

3.x: the first frame of the older versions is the message, whatever follows; its parser takes the time from the field
`timestamp` until a message lacks it, and plots numbers and truth values only, under names that begin with `/`.
4: only two or three frames have a topic; strings of less than 100 characters are plotted too, a field has the type of
its first value, and names do not begin with `/`.
"""

import json

LONGEST_STRING = 100


def _leaves(prefix, value, slash):
    """(name, value) of what is below."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{prefix}/{key}" if prefix or slash else key, item, slash)
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from _leaves(f"{prefix}[{k}]", item, slash)
    else:
        yield prefix, value


class PlotJuggler3:
    """curves: name -> [(time, value)]."""

    def __init__(self):
        self.curves, self._stamped = {}, True

    def receive(self, frames, now):
        message = json.loads(frames[0])
        stamp = message.get("timestamp")
        self._stamped = self._stamped and isinstance(stamp, int | float)
        for name, value in _leaves("", message, slash=True):
            if isinstance(value, int | float):
                self.curves.setdefault(name, []).append((stamp if self._stamped else now, float(value)))


class PlotJuggler4:
    """curves: name -> [(time, value)]. Raises TypeError for a field that changes its type."""

    def __init__(self):
        self.curves, self._types = {}, {}

    def receive(self, frames, now):
        assert len(frames) == 1, "a topic would be part of the names"
        message = json.loads(frames[0])
        stamp = message["timestamp"] if isinstance(message.get("timestamp"), int | float) else now
        for name, value in _leaves("", message, slash=False):
            if value is None or (isinstance(value, str) and len(value) >= LONGEST_STRING):
                continue
            if self._types.setdefault(name, type(value)) is not type(value):
                raise TypeError(f"{name} was {self._types[name].__name__}, is {type(value).__name__}")
            self.curves.setdefault(name, []).append((stamp, value))
