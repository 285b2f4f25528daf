"""`moorage top`: what a gateway is doing now, from its metrics, replicas and decisions."""
