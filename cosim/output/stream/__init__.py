"""The telemetry stream: samples of a running rig on a ZeroMQ PUB socket, one self-contained message each."""
