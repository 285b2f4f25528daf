"""Follows the API server: one reflector for each kind of object."""
