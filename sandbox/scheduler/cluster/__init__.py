"""What the scheduler reads from the API server and writes to it."""
