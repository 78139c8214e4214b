"""Shared by the tests of drivers mistakes."""

from __future__ import annotations

# lines 1 to 12
RIG = """\
mechanism:
  bodies:
    - {name: upper, joint: shoulder, axis: [0, 1, 0], mass: 1, inertia: [1, 1, 1]}
    - {name: fore, joint: elbow, axis: [0, 1, 0], mass: 1, inertia: [1, 1, 1]}
    - {name: thumb, mass: 1, inertia: [1, 1, 1], parent: fore, mimic: {joint: elbow}}
    - {name: tool, type: fixed, parent: fore}
    - {name: ball, type: spherical, parent: base, mass: 1, inertia: [1, 1, 1]}
    - {name: rail, joint: lift, type: prismatic, axis: [1, 0, 0], mass: 1, parent: base}
    - {name: swing, joint: swing, axis: [0, 1, 0], parent: base, mass: 1, inertia: [1, 1, 1]}
joints:
  all: {limits: {velocity: 9, effort: 9}}
  swing: {prescribed: {type: sine, amplitude: 0.1, frequency: 1}}
"""


BUS = "bus: {interface: virtual, channel: a}"


ELBOW = "joints: {elbow: {id: 1}}"


REAL = f"drivers: [{{type: odrive, {BUS}, {ELBOW}}}]\n"  # line 13


SLOW = "use a longer schedule.step, a higher bit rate, or two buses"


def driver(*words):
    return f"drivers: [{{type: odrive, {', '.join(words)}}}]\n"


TWO = f"""\
drivers:
  - {{type: odrive, {BUS}, {ELBOW}}}
  - {{name: b, type: cia402, {BUS.replace("a}", "b}")}, joints: {{lift: {{id: 2}}}}}}
"""


KINDS = (
    "drop, delay, late_answers, duplicate, corrupt, reorder, bus_off, stale_heartbeat, brown_out, power_loss,"
    " encoder_jump, encoder_drift, encoder_noise, encoder_freeze, encoder_nan, coupling_slip, hot_winding,"
    " motor_fault, position_unit, velocity_unit and 1 more"
)
