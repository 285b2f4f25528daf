"""The extender protocol's JSON: Go's exact field names out, any casing in.

Only `gateway.edge` imports this. `requests` reads, `answers` writes, `names` does node-name
arrays, which are most of the bytes, and `casing` is the slow path for callers that are not Go.
"""
