"""Parts of a rig as federates of HELICS: other processes, also on other machines.

All of them load the rig. The mechanism's federate asks one part at a time for a step, and gets its outputs and work.
"""

from cosim.simulation.federation.federation import Federation, federated
from cosim.simulation.federation.part_server import serve

__all__ = ["Federation", "federated", "serve"]
