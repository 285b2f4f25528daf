"""Hands binds to the binder over one stream, and keeps the pod assumed meanwhile."""
