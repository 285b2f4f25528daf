"""The plugin that pytest finds where Moorage is installed: fixtures for tests of plugins.

It is no part of `moorage`, whose import takes numpy: pytest loads this at every start.
"""
