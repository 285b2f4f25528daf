"""Measures Moorage beside extenders in Go; see `make bench`."""

import moorage_host.rpc  # noqa: F401 - before grpc is imported, which reads what this sets
