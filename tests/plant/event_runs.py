"""Rigs with events and their runs, for the tests of events."""

import numpy as np

# one body that slides along x under "gravity" of 2 m/s² along x
SLIDER = """
mechanism:
  gravity: [2, 0, 0]
  bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 3 kg}]
"""
G, M = 2.0, 3.0


class EventRun:
    """A run to the end, by the rig's own engine, with the modes of its last row."""

    def __init__(self, rig, engine=None, ticks=None):
        tick_model, schedule = rig.tick_model, rig.spec.schedule
        engine = engine or rig.engine()
        engine.open()
        engine.arm()
        ticks = ticks or round(schedule.duration_ns / schedule.step_ns)
        rows, self.fault = engine.run(ticks + 1)
        engine.close()
        self.rows, self.names, self.tick_model = rows, tick_model.signals.names, tick_model
        self.t = np.arange(len(rows)) * tick_model.step
        self.values = rig.observe(engine.view("bumpless_start"), rows)
        self.modes = tick_model.row.unpack(rows[-1])["plant"]["modes"] if tick_model.plant.modes else {}
        self.event_names = tick_model.plant.modes.event_names

    def __getitem__(self, name):
        return self.values[:, self.names.index(name)]

    def event(self, name):
        """(how often, when last, energy lost) of an event or stop."""
        k = self.event_names.index(name)
        return tuple(float(self.modes[what][k]) for what in ("count", "last", "lost"))


def with_events(events, text=SLIDER, schedule="step: 1 ms, duration: 1 s"):
    lines = "".join(f"  - {{{event}}}\n" for event in events)
    return f"{text}events:\n{lines}schedule: {{{schedule}}}\n"


FOUR_BAR = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: A, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: B, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
    - {name: C, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], parent: base, origin: {xyz: [0.5, 0, 0]}}
  loops:
    - {name: pin, parent: C, child: B, origin: {xyz: [0.45, 0, 0]}, child_origin: {xyz: [0.5, 0, 0]}}
joints:
  A: {initial: {position: 60 deg}}
  B: {initial: {guess: -60 deg}}
  C: {initial: {guess: 60 deg}}
"""

PUSHED = """
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 2 kg}]
joints: {a: {initial: {velocity: 3}}}
controllers: [{type: passthrough, interface: effort, trajectory: {type: chirp, of: effort, amplitude: 10, f0: 0.25,
               f1: 0.25, duration: 10}}]
"""
BALL = SLIDER + "joints: {a: {stops: {upper: 0.25, restitution: 0.5}}}\n"
