"""Faults as scenarios: a rig is run with them in simulated time, and its reaction is compared with the expected one."""
