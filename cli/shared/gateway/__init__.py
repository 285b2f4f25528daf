"""The connection of commands to a gateway's admin port: by its URL, or through the API server."""
