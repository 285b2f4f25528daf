"""Starts the processes that are measured and the load, with the nodes and pods they see."""
