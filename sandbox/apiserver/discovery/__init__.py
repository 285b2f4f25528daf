"""The documents about what is served: version, groups, resources and OpenAPI."""
