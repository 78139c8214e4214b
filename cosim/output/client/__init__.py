"""Programs beside a run: control it, and follow its stream. Needs ZeroMQ, and nothing of the rig."""

from cosim.output.client.control import ControlClient, connect
from cosim.output.client.subscriber import Sample, Subscriber, subscribe

__all__ = ["ControlClient", "Sample", "Subscriber", "connect", "subscribe"]
