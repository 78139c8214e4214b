"""Planar systems of flexible cables in exudyn, a peer of elastic links: absolute nodal coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.interpolate import CubicSpline

from benchmarks.peers import import_peer

Section = dict[str, float]  # mass [kg/m], EI [N m²], EA [N]
Piece = tuple[float, int, Section]  # length [m], number of elements, section


def tube(diameter: float, wall: float = 1e-3, modulus: float = 70e9, density: float = 2700.0) -> Section:
    """Of a tube, of aluminium by default."""
    inner = diameter - 2.0 * wall
    area, second = np.pi / 4.0 * (diameter**2 - inner**2), np.pi / 64.0 * (diameter**4 - inner**4)
    return {"mass": density * area, "EI": modulus * second, "EA": modulus * area}


class Cables:
    """A planar system of cables in exudyn; angles and places refer to the undeformed state. At first it turns
    about the origin at a rate [rad/s]."""

    def __init__(self, rate: float = 0.0) -> None:
        """Raises MissingPeer."""
        self.rate = rate
        self.exudyn, self.items = import_peer("exudyn"), import_peer("exudyn.itemInterface")
        self.container = self.exudyn.SystemContainer()
        self.mbs = self.container.AddSystem()
        origin = self.mbs.AddObject(self.items.ObjectGround())
        self.ground = self.mbs.AddMarker(self.items.MarkerBodyPosition(bodyNumber=origin))
        self.zero: int = self.coordinate(self.mbs.AddNode(self.items.NodePointGround()), 0)

    def coordinate(self, node: int, number: int) -> int:
        return self.mbs.AddMarker(self.items.MarkerNodeCoordinate(nodeNumber=node, coordinate=number))

    def place(self, node: int) -> int:
        return self.mbs.AddMarker(self.items.MarkerNodePosition(nodeNumber=node))

    def cable(self, origin: Sequence[float] | np.ndarray, angle: float, *pieces: Piece) -> list[int]:
        """A straight cable of pieces (length, elements, section): the nodes at their ends."""
        start, along = np.array(origin), np.array([np.cos(angle), np.sin(angle)])
        nodes = [self.node(start, along)]
        for length, elements, section in pieces:
            last = nodes[-1]
            for k in range(elements):
                nodes_of_element = [last, last := self.node(start + along * length * (k + 1) / elements, along)]
                self.mbs.AddObject(
                    self.items.ObjectANCFCable2D(
                        nodeNumbers=nodes_of_element,
                        length=length / elements,
                        massPerLength=section["mass"],
                        bendingStiffness=section["EI"],
                        axialStiffness=section["EA"],
                    )
                )
            nodes.append(last)
            start = start + along * length
        return nodes

    def node(self, place: np.ndarray, along: np.ndarray) -> int:
        state = {"referenceCoordinates": [*place, *along], "initialVelocities": [*self._turned(place, along)]}
        return self.mbs.AddNode(self.items.NodePoint2DSlope1(**state))

    def _turned(self, *vectors: Sequence[float] | np.ndarray) -> list[float]:
        return [self.rate * part for x, y in vectors for part in (-y, x)]

    def pin_to_ground(self, node: int) -> None:
        """The node is at the origin."""
        self.mbs.AddObject(self.items.RevoluteJoint2D(markerNumbers=[self.ground, self.place(node)]))

    def clamp_on_turning_axis(self, node: int, angle: Callable[[float], float]) -> None:
        """The node is at the origin, and its slope has the angle(t)."""
        self.pin_to_ground(node)
        for number, change in (
            (2, lambda mbs, t, *_: np.cos(angle(t)) - 1.0),
            (3, lambda mbs, t, *_: np.sin(angle(t))),
        ):
            ends = [self.zero, self.coordinate(node, number)]
            self.mbs.AddObject(self.items.CoordinateConstraint(markerNumbers=ends, offsetUserFunction=change))

    def mass(self, place: Sequence[float] | np.ndarray, mass: float, nodes: Sequence[int]) -> int:
        """The node of a point mass that is pinned to other nodes."""
        node = self.mbs.AddNode(
            self.items.NodePoint2D(referenceCoordinates=[*place], initialVelocities=self._turned(place))
        )
        self.mbs.AddObject(self.items.ObjectMassPoint2D(mass=mass, nodeNumber=node))
        for other in nodes:
            self.mbs.AddObject(self.items.RevoluteJoint2D(markerNumbers=[self.place(node), self.place(other)]))
        return node

    def paths(self, nodes: Sequence[int], duration: float, step: float, times: np.ndarray) -> list[np.ndarray]:
        """(len(times), 2) m for each node; its times do not lie exactly on its steps."""
        sensed = self.exudyn.OutputVariableType.Position
        sensors = [
            self.mbs.AddSensor(self.items.SensorNode(nodeNumber=node, storeInternal=True, outputVariableType=sensed))
            for node in nodes
        ]
        self.assemble(duration, step)
        self.solve()
        found = [self.mbs.GetSensorStoredData(sensor) for sensor in sensors]
        return [CubicSpline(rows[:, 0], rows[:, 1:3])(times) for rows in found]

    def assemble(self, duration: float, step: float, solver: str = "EigenSparse") -> None:
        """Ready for a run from the undeformed state, by generalised α and a linear solver of exudyn."""
        self.mbs.Assemble()
        settings = self.exudyn.SimulationSettings()
        settings.timeIntegration.numberOfSteps = round(duration / step)
        settings.timeIntegration.endTime = duration
        settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
        settings.timeIntegration.newton.useModifiedNewton = True
        settings.linearSolver.solverType = getattr(self.exudyn.LinearSolverType, solver)
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = step
        self.settings = settings

    def solve(self) -> None:
        """The run."""
        self.mbs.SolveDynamic(self.settings)
