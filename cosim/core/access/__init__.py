"""Who may connect to what this program serves: the guard of its web servers, and the private folder of a user."""
