"""Gateway, binder and API server in one process."""
