"""What every HTTP port has: limits of its connections, and checks of requests before any handler.

requests     `Host`, `Origin` and `Content-Type` of a request; counts and logs what is refused
callers      who may call, by certificate or bearer token, and of which namespaces they may see pods
connections  how many connections are open, and how long each may take to ask for something
"""
