"""From YAML to checked values that know their place in the file."""
