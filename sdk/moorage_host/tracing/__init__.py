"""What tracing needs without OpenTelemetry: spans as values, where they go, and the setting.

span  trace contexts and spans, and the span of a call that is under way
sink  where spans are sent while a process serves
otel  the only module that imports OpenTelemetry
"""
