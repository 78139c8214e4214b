"""What came from elsewhere is read as data within bounds, and code is loaded from private folders alone."""
