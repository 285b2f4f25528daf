"""gRPC, for the services and for who calls them. Plugins need nothing of this.

serve        runs a gRPC service from start to drain
session      one gateway's session with a replica of filter or scorer; adhoc, state, describe
role         how a replica is served as filter or as scorer
stream       the calling side of a stream of numbered requests
interceptor  status, metrics and log context of every call
errors       CallError, and the one table from exceptions to gRPC's status codes
channel      connects to a service
credentials  gRPC's credentials from the certificates of a process
convert      protobuf <-> models
standard     health and reflection
"""

import os

# gRPC's core reads these once, when it is imported. It writes lines of its own on stderr otherwise;
# and its older event loop takes a third less time for a message from process to process.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
# What it does when a process is forked.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# TLS 1.3 only: there is no setting for the version, one for the ciphers of those before. This one
# needs a key that both sides have agreed on before, so nobody can use it.
os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", "ECDHE-PSK-CHACHA20-POLY1305")
