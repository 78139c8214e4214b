"""Clocks, the native loop, the policy for late ticks, real-time privileges and deadlines."""
