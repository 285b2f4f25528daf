"""What was decided about each pod, and why: kept in memory, and answered to whoever may read pods.

log             the latest attempts of the newest pods
arrays          the verdict and the scores of each node, for the newest attempts
decisions       all that is kept of cycles
sentences, why  what a decision amounts to, in words
listing, nodes  pages of decisions, and of the nodes of one
query, routes   what can be asked for, on the admin port
stream          decisions as they come, for those who follow them
"""
