"""The three gRPC services behind the gateway."""
