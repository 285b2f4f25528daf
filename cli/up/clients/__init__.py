"""Clients of the processes that `moorage up` starts."""
