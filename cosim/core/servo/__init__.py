"""The sampled loops of a servo drive as pure functions: encoder, position, velocity and PI control."""
