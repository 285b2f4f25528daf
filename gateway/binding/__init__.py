"""Binds: what the gateway has the binder do, and which pods count as placed meanwhile."""
