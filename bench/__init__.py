"""Measures Moorage; see `make bench`."""

import moorage.rpc  # noqa: F401 - before grpc is imported, which reads what this sets
