"""Real motors, here emulated drives on a bus: armed separately, and what will move is listed."""

import os
import signal
import subprocess
import sys

# a machine that stalls for a while stops no run, and an arm without gravity stays where it is left
EASY = ("guard.stale=0.5", "guard.watchdog=3", "mechanism.gravity=[0, 0, 0]", "drivers.moteus.watchdog=2")


def test_motors_are_armed_before_they_start_and_again_before_the_next_run(dash) -> None:
    channel = f"drivers.moteus.bus.channel=239.83.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    words = [word for item in (*EASY, channel) for word in ("--set", item)]
    command = [sys.executable, "-m", "cosim", "emulate", "rigs/arm_can.yaml", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        try:
            assert emulator.stdout is not None
            while not emulator.stdout.readline().startswith("emulating"):
                pass
            page = dash("rigs/arm_can.yaml", *words, "--frame-rate", "2")
            page.wait_for_status("Ready to start")
            page.wait_for_text("The motors are off; arm them before the start.")
            page.wait_for_text("node 1, base: effort 10 N·m")
            assert not page.tab.get_by_role("button", name="Start", exact=True).count()
            page.press("Arm the motors")
            page.wait_for_status("Motors armed")
            page.press("Start")
            page.wait_for_status("Running")
            assert not page.tab.get_by_role("button", name="Pause", exact=True).count()
            page.open("Health")
            page.wait_for_text("base temperature")
            page.wait_for_text("up to 75%")
            page.press("Stop")
            page.wait_for_status("Ended")
            page.press("Connect again")
            page.wait_for_status("Ready to start")
            page.tab.get_by_role("button", name="Arm the motors").wait_for()
        finally:
            emulator.send_signal(signal.SIGINT)
