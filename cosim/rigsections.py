"""The sections of a rig file as they are written; the dataclasses are the schema of the format.

Sections with a `type` are plain mappings here: the module that the type names has their schema.
"""

from __future__ import annotations

from typing import Literal

from cosim.types import param, params

Integrator = Literal["semi_implicit_euler", "rk4", "rosenbrock"]


@params
class MechanismFile:
    urdf: str | None = param(default=None)
    bodies: list | None = param(default=None)
    gravity: tuple[float, float, float] = param(unit="m/s^2", default=(0.0, 0.0, -9.81))


@params
class EncoderSpec:
    counts: int | None = param(min=1, default=None, doc="per turn or metre of the joint; default: no rounding")
    delay: Literal[0, 1] = param(default=0, doc="ticks by which the measurement is late")


@params
class InitialFile:
    position: float = param(unit="joint position", default=0.0)
    velocity: float = param(unit="joint velocity", default=0.0)


@params
class LimitsFile:
    lower: float | None = param(unit="joint position", default=None)
    upper: float | None = param(unit="joint position", default=None)
    velocity: float | None = param(unit="joint velocity", above=0, default=None)
    effort: float | None = param(unit="joint effort", above=0, default=None)


@params
class JointFile:
    actuator: dict | None = param(default=None)
    encoder: EncoderSpec | None = param(default=None)
    initial: InitialFile = param(default=InitialFile())
    limits: LimitsFile = param(default=LimitsFile())
    prescribed: dict | None = param(default=None)
    driver: str = param(default="sim")


@params
class ControllerFile:
    name: str | None = param(default=None)
    joints: tuple[str, ...] | None = param(default=None)
    period: float | None = param(unit="s", above=0, default=None)
    trajectory: dict | None = param(default=None)


@params
class ScheduleFile:
    step: float = param(unit="s", min=1e-6, default=1e-3)
    duration: float = param(unit="s", above=0, default=5.0)
    integrator: Integrator = param(default="rk4")
    substeps: int = param(min=1, default=1)
    seed: int = param(min=0, default=0)


@params
class TelemetrySpec:
    publish: str | None = param(default=None, doc="ZeroMQ endpoint")
    rate: float = param(unit="Hz", above=0, default=50.0)


@params
class RigFile:
    mechanism: dict = param()
    name: str | None = param(default=None)
    description: str = param(default="")
    joints: dict | None = param(default=None)
    controllers: list | None = param(default=None)
    schedule: dict | None = param(default=None)
    telemetry: TelemetrySpec = param(default=TelemetrySpec())
