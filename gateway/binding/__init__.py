"""Sends binds to the binder over one stream, and keeps the pods assumed meanwhile."""
