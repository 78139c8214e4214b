"""Engines that take ticks, and the scheduler that leads them through their states."""
