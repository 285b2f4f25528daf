"""Measures Moorage; see `make bench`."""

import moorage_host.rpc  # noqa: F401 - before grpc is imported, which reads what this sets
