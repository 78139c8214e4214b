"""The section `telemetry`: an endpoint in the network needs a permission and a key."""

from pathlib import Path

import pytest

REACH = "rig.yaml:8 telemetry.publish: the network can reach this endpoint"


@pytest.mark.parametrize("endpoint", ["tcp://*:9872", "tcp://0.0.0.0:9872", "tcp://eth0:1"])
def test_endpoints_in_the_network_need_a_permission_and_a_key(rigs, endpoint):
    def rig(more=""):
        return f"{rigs.mechanism}telemetry: {{publish: '{endpoint}'{more}}}\n"

    Path("rig.key").write_text("")
    local = "use one such as tcp://127.0.0.1:9872 or ipc:///tmp/rig, or set telemetry.network and telemetry.key"
    key = "set telemetry.key to a file that `cosim key` wrote"
    assert rigs.mistakes(rig()) == [f"{REACH}; {local}"]
    assert rigs.mistakes(rig(", key: rig.key")) == [f"{REACH}; {local}"]
    assert rigs.mistakes(rig(", network: yes")) == [f"{REACH}; {key}"]
    telemetry = rigs.read(rig(", network: yes, key: rig.key")).telemetry
    assert telemetry.key is not None and Path(telemetry.key).samefile("rig.key")


@pytest.mark.parametrize("endpoint", ["foo", "udp://1.2.3.4:5", "tcp://127.0.0.1", "tcp://127.0.0.1:abc", "http://x:1"])
def test_what_is_no_endpoint(rigs, endpoint):
    fix = "give one such as tcp://127.0.0.1:9872 or ipc:///tmp/rig"
    assert rigs.mistakes(f"{rigs.mechanism}telemetry: {{publish: '{endpoint}'}}\n") == [
        f"rig.yaml:8 telemetry.publish: '{endpoint}' is no endpoint; {fix}"
    ]


def test_a_key_file_that_is_missing(rigs):
    found = rigs.mistakes(f"{rigs.mechanism}telemetry: {{key: rig.key}}\n")
    assert found == ["rig.yaml:8 telemetry.key: there is no file rig.key; write one with `cosim key`"]
