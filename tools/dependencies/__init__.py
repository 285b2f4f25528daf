"""Checks the locked dependencies; `make audit`."""
