"""What every HTTP port has: limits of its connections, and checks of requests before any handler.

refusals     counts and logs what is refused
requests     `Host`, `Origin` and `Content-Type` of a request
callers      who may call, by certificate or bearer token
reading      of which namespaces a caller may see pods
connections  how many connections are open, and how long each may take to ask for something
"""
