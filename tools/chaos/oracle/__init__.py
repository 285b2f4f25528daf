"""Judges a campaign by the audit log."""
