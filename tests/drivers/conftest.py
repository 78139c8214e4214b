"""Drawn examples of the tests of drivers: the same in each run, and none is late on a machine that stalls."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "drivers",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("drivers")
