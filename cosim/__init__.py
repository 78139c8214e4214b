"""Robotics control co-simulation with hardware in the loop."""
