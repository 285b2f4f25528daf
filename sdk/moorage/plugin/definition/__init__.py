"""Refuses plugin classes that would fail, or be ignored, at their first pod."""
