"""A run in the browser."""

import socket
import subprocess
import sys


def test_a_run_is_followed_and_its_end_by_a_kill_is_stated(dash) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    words = ["run", "rigs/arm_sim.yaml", "--realtime", "--duration", "300", "--telemetry", address]
    run = subprocess.Popen([sys.executable, "-m", "cosim", *words], stdout=subprocess.DEVNULL)
    try:
        page = dash(address, "--frame-rate", "2")  # drawn without a GPU
        page.wait_for_status("Running")
        page.tab.wait_for_selector(".uplot")
        first = page.detail()
        page.wait_until(lambda: page.detail() != first)
    finally:
        run.kill()
        run.wait()
    page.wait_for_status("The run is gone")
    assert page.external == []
