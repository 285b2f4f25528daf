"""Traces of calls, by OpenTelemetry's API; its SDK is an extra and is imported where it is used.

spans  spans of the calls that are traced
sink   whether, and where to, a process sends spans: settings, and the check of the URL
otel   the only module that imports the SDK
"""
