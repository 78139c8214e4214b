"""Rigs of free bodies that touch, as texts."""

import math

import numpy as np
import pytest

from cosim import load_rig


def body(name, mass, inertia, position, angle=0.0, velocity=(0.0,) * 6):
    """(entry of `bodies`, entry of `joints`) of a free body turned about y by this angle [rad]; velocity: along its
    axes."""
    inertia = ", ".join(map(str, inertia))
    place = [*map(float, position), 0.0, math.sin(angle / 2), 0.0, math.cos(angle / 2)]
    text = f"    - {{name: {name}, parent: base, type: free, mass: {mass}, com: [0, 0, 0], inertia: [{inertia}]}}\n"
    return text, f"  {name}: {{initial: {{position: {place}, velocity: {list(map(float, velocity))}}}}}\n"


def slider(name, axis, settings, position=0.0, mass=0.2):
    """Like `body`, on a prismatic joint of the ground; settings: further keys of the joint."""
    inertia = ", ".join([str(mass * 1e-3)] * 3)
    text = f"    - {{name: {name}, parent: base, joint: {name}, type: prismatic, axis: {axis}, mass: {mass}, "
    text += f"com: [0, 0, 0], inertia: [{inertia}]}}\n"
    return text, f"  {name}: {{initial: {{position: {position}}}, {settings}}}\n"


def cube(mass, edge):
    """Its principal moments of inertia."""
    return [mass * edge * edge / 6] * 3


def contact_rig(folder, bodies, contacts, duration, step=1e-3, mechanism=""):
    """bodies: see `body`; contacts: the keys of each; mechanism: further lines of the section."""
    of_bodies, of_joints = ("".join(text) for text in zip(*bodies, strict=True))
    entries = "".join(f"    - {{{contact}}}\n" for contact in contacts)
    text = f"name: contact\nmechanism:\n{mechanism}  bodies:\n{of_bodies}  contacts:\n{entries}"
    text += f"joints:\n{of_joints}schedule: {{step: {step * 1e6:.12g} us, duration: {duration}}}\n"
    path = folder / "rig.yaml"
    path.write_text(text)
    return load_rig(path)


def solved_runs(worst):
    """The fixture `run`: runs of a `contact_rig` whose residual is below `worst` [m/s] at all times."""

    @pytest.fixture
    def run(tmp_path):
        def run(*args, **more):
            found = contact_rig(tmp_path, *args, **more).run()
            assert np.max(found["contacts/residual"]) < worst
            return found

        return run

    return run
