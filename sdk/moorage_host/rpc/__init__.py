"""What every Moorage process needs around its own work: gRPC, health, metrics, logs, signals.

Plugins need nothing of this; it comes with the extra `moorage[rpc]`. Import from the modules:

    errors       CallError, and the one table from exceptions to gRPC's status codes
    interceptor  status, metrics and log context of every call
    serve        runs a gRPC service from start to drain
    process      signals, exit codes, settings that all processes share
    admin        /livez, /readyz, /metrics
    channel      connects to a service
    convert      protobuf <-> models
    metrics      what all processes count
    logs         one line for each event
"""

import os

# gRPC's core reads these once, when it is imported. It writes lines of its own on stderr otherwise;
# and its older event loop takes a third less time for a message from process to process.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
