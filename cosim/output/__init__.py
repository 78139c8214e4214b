"""What a run writes: events, the recording, telemetry, pictures, messages on the console."""
