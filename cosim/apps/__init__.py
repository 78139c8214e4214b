"""What people do with a rig beyond running it: each folder is one command or a few."""
