"""What leaves a run: events, alarms, recording, telemetry, plots."""
