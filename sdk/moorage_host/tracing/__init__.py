"""What tracing needs without OpenTelemetry: spans as values, where they go, and the setting.

span      trace contexts and spans
current   the context of a call that is under way, for what knows no request
settings  where spans are sent
sink      takes spans while a process serves; the only module that imports OpenTelemetry is `otel`
"""
