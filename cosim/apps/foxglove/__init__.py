"""A run live in Foxglove: a bridge from its stream and control socket to Foxglove's WebSocket protocol."""
