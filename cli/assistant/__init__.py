"""Answers an assistant's questions about a gateway: `moorage mcp`."""
