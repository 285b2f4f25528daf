"""Gateways and a binder in virtual time, in any order of events."""
