"""Shared by the tests of schedule."""

CAN = "interface: virtual, channel: a"


HOLD = "{name: hold, type: pid, kp: 50, ki: 10, kd: 5"
