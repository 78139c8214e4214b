"""The CiA 402 client of the package `canopen` with the drives of `cosim emulate`, as delivered, on buses that other
programs can reach: states by PDO, node guarding, and services that the drives do not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import canopen
import pytest
from canopen.profiles.p402 import BaseNode402

from cosim.drivers.cia402.profile import STATES
from cosim.hardware.emulation.server import EmulationServer
from tests.kit.emulated import emulated

from .families import Case, addresses, rig, section, write_rig
from .test_cia402_reference import dictionary

NODE = 1
PATIENCE = 5.0  # s, for a machine that stalls


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[[str], tuple[EmulationServer, canopen.Network, Any]]]:
    """connect(interface) -> the drives, the network of the client, and its node 1, which is pre-operational."""
    done: list[Any] = []

    def made(interface: str) -> tuple[EmulationServer, canopen.Network, Any]:
        driver = section(Case("cia402", "udp_multicast"), tmp_path)
        if interface == "slcan":
            driver["bus"] = {"interface": "slcan", "channel": str(tmp_path / "can"), "bitrate": 1e6}
        data = rig(driver, addresses(Case("cia402", "virtual")))
        data["schedule"]["step"] = "1 ms"
        server = emulated(write_rig(tmp_path / "rig.yaml", data))
        emulation = server.__enter__()
        done.append(lambda: server.__exit__(None, None, None))
        network = canopen.Network()
        network.NOTIFIER_CYCLE = 0.01
        rate = {"bitrate": 1_000_000, "sleep_after_open": 0} if interface == "slcan" else {}
        network.connect(interface=interface, channel=driver["bus"]["channel"], **rate)
        done.append(network.disconnect)
        node = BaseNode402(NODE, dictionary())
        for name in ("STATE_SINGLE", "STATE_FINAL", "OP_MODE"):
            setattr(node, f"TIMEOUT_SWITCH_{name}", PATIENCE)
        node.TIMEOUT_CHECK_TPDO = PATIENCE
        network.add_node(node)
        node.nmt.state = "PRE-OPERATIONAL"
        return emulation, network, node

    yield made
    for each in reversed(done):
        each()


@pytest.mark.parametrize("interface", ["slcan", "udp_multicast"])
def test_states_are_changed_by_pdo(connect, interface):
    emulation, _, node = connect(interface)
    node.setup_402_state_machine()
    assert 0x6040 in node.rpdo_pointers and 0x6041 in node.tpdo_pointers
    node.nmt.state = "OPERATIONAL"
    if interface == "udp_multicast":  # which returns what is sent: the client then takes its PDO for a periodic one
        node.rpdo[1].start(0.01)
    (connection,) = emulation.connections
    try:
        for state in ("OPERATION ENABLED", "SWITCHED ON", "SWITCH ON DISABLED", "OPERATION ENABLED"):
            node.state = state
            assert node.state == state and connection.drives.nodes[0].state == STATES.index(state.lower())
    finally:
        node.rpdo[1].stop()


def test_a_node_is_guarded(connect):
    emulation, _, node = connect("slcan")
    states: list[int] = []
    node.nmt.add_heartbeat_callback(states.append)
    node.nmt.start_node_guarding(0.005)
    try:
        for _ in range(3):
            assert node.nmt.wait_for_heartbeat(PATIENCE) == "PRE-OPERATIONAL"
    finally:
        node.nmt.stop_node_guarding()
    node.sdo[0x1017].raw = 20  # heartbeats in its place
    assert node.nmt.wait_for_heartbeat(PATIENCE) == "PRE-OPERATIONAL"
    assert set(states) == {127} and emulation.connections[0].drives.unknown.count == 0


def test_services_that_the_drives_do_not_have(connect):
    emulation, network, node = connect("slcan")
    unknown = emulation.connections[0].drives.unknown
    with pytest.raises(canopen.SdoAbortedError) as refused:
        node.sdo.open(0x1008, block_transfer=True).read()
    assert refused.value.code == 0x05040001
    network.lss.RESPONSE_TIMEOUT = 0.05
    network.lss.send_switch_state_global(network.lss.CONFIGURATION_STATE)
    with pytest.raises(canopen.lss.LssError):
        network.lss.inquire_node_id()
    assert unknown.count >= 2
