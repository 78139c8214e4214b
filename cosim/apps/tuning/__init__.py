"""Tuning sessions: gains with known margins, found by many simulated runs of a rig and tried on the real one."""
