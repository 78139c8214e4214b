"""A rig as one HTML file that simulates it in a browser: its module inside, no server, no network."""
