"""Drake, a peer of contacts: points of contact and the convex solver SAP, at its defaults. No test
needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.legged_robots import FRICTION, LeggedRobot
from benchmarks.peers import MissingPeer, import_peer

BALL = 5e-3  # m, radius of a corner: its points are spheres


class DrakeScene:
    """A plant with a ground in discrete steps [s], and its simulator. fill(scene) adds bodies. Raises MissingPeer."""

    def __init__(self, step: float, fill: Callable[[DrakeScene], None]) -> None:
        if find_spec("pydrake") is None:
            raise MissingPeer("pydrake", "pip install --target FOLDER --no-deps drake, and FOLDER in PYTHONPATH")
        self.trees, self.math = import_peer("pydrake.multibody.tree"), import_peer("pydrake.math")
        self.geometry = import_peer("pydrake.geometry")
        plants, framework = import_peer("pydrake.multibody.plant"), import_peer("pydrake.systems.framework")
        builder = framework.DiagramBuilder()
        self.plant, _ = plants.AddMultibodyPlantSceneGraph(builder, step)
        self.plant.set_discrete_contact_approximation(plants.DiscreteContactApproximation.kSap)
        self.plant.set_contact_model(plants.ContactModel.kPoint)
        self.coulomb = plants.CoulombFriction
        fill(self)
        self.plant.Finalize()
        self.simulator = import_peer("pydrake.systems.analysis").Simulator(builder.Build())
        self.context = self.simulator.get_mutable_context()
        self.own = self.plant.GetMyMutableContextFromRoot(self.context)

    def touches(self, body: Any, shape: Any, place: Any, name: str, friction: float) -> None:
        self.plant.RegisterCollisionGeometry(body, place, shape, name, self.coulomb(friction, friction))

    def ground(self, rotation: Any, friction: float) -> None:
        world = self.plant.world_body()
        self.touches(world, self.geometry.HalfSpace(), self.at(rotation, np.zeros(3)), "ground", friction)

    def at(self, rotation: Any, place: np.ndarray) -> Any:
        return self.math.RigidTransform(rotation, place)

    def start(self, body: Any, pose: Any) -> None:
        """At rest with this body there."""
        self.context.SetTime(0.0)
        self.plant.SetVelocities(self.own, np.zeros(self.plant.num_velocities()))
        self.plant.SetFreeBodyPose(self.own, body, pose)

    def place_of(self, body: Any) -> np.ndarray:
        return np.array(self.plant.EvalBodyPoseInWorld(self.own, body).translation())

    def advance(self, end: float) -> None:
        self.simulator.Initialize()
        self.simulator.AdvanceTo(end)


class CubeInDrake:
    """A cube of 1 kg on four corners on a slope about y."""

    def __init__(self, step: float, edge: float, slope: float, friction: float) -> None:
        self.edge, self.slope, self.friction = edge, slope, friction
        self.scene = DrakeScene(step, self._fill)

    def _fill(self, scene: DrakeScene) -> None:
        self.turn = scene.math.RotationMatrix.MakeYRotation(self.slope)
        scene.ground(self.turn, self.friction)
        inertia = scene.trees.UnitInertia.SolidBox(self.edge, self.edge, self.edge)
        self.cube = scene.plant.AddRigidBody("cube", scene.trees.SpatialInertia(1.0, [0, 0, 0], inertia))
        half = self.edge / 2
        for k, (x, y) in enumerate(((-half, -half), (-half, half), (half, -half), (half, half))):
            place = scene.at(scene.math.RotationMatrix(), np.array([x, y, BALL - half]))
            scene.touches(self.cube, scene.geometry.Sphere(BALL), place, f"corner_{k}", self.friction)

    def way(self, end: float) -> float:
        """Down the slope from rest [m]."""
        matrix = self.turn.matrix()
        start = matrix[:, 2] * self.edge / 2
        self.scene.start(self.cube, self.scene.at(self.turn, start))
        self.scene.advance(end)
        return float(matrix[:, 0] @ (self.scene.place_of(self.cube) - start))


class RobotInDrake:
    """A robot with legs under PD drives, which are implicit in the step."""

    def __init__(self, robot: LeggedRobot, step: float) -> None:
        self.robot = robot
        self.scene = DrakeScene(step, self._fill)

    def _fill(self, scene: DrakeScene) -> None:
        robot, plant = self.robot, scene.plant
        parser = import_peer("pydrake.multibody.parsing").Parser(plant)
        (self.instance,) = parser.AddModelsFromString(robot.text, "urdf")
        upright = scene.math.RotationMatrix()
        scene.ground(upright, FRICTION)
        for k, (link, centre, radius) in enumerate(robot.feet):
            body, place = plant.GetBodyByName(link), scene.at(upright, np.array(centre))
            scene.touches(body, scene.geometry.Sphere(radius), place, f"foot_{k}", FRICTION)
        for name in robot.joints:
            actuator = plant.AddJointActuator(name, plant.GetJointByName(name))
            actuator.set_controller_gains(scene.trees.PdControllerGains(p=robot.kp, d=robot.kd))

    def base(self, clearance: float, end: float) -> np.ndarray:
        """(3,) place of the base after it was released at rest [m]."""
        scene, joints = self.scene, self.robot.joints
        body = scene.plant.GetBodyByName(self.robot.model.mechanism.joints[0].child)
        height = self.robot.base_height(clearance)
        scene.start(body, scene.at(scene.math.RotationMatrix(), np.array([0.0, 0.0, height])))
        self._place_joints(joints)
        scene.advance(end)
        return scene.place_of(body)

    def _place_joints(self, joints: Mapping[str, float]) -> None:
        for name, angle in joints.items():
            self.scene.plant.GetJointByName(name).set_angle(self.scene.own, angle)
        wanted = np.concatenate([list(joints.values()), np.zeros(len(joints))])
        self.scene.plant.get_desired_state_input_port(self.instance).FixValue(self.scene.own, wanted)
