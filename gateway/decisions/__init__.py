"""What was decided about each pod, and why: kept in memory, and answered to whoever may read pods.

log             the latest attempts of the newest pods
nodes           the verdict and the scores of each node, for the newest attempts
sentences, why  what a decision amounts to, in words
listing         pages of decisions, and of pods without a node
query           what can be asked for
routes          all that is kept of cycles, on the admin port
stream          decisions as they come, for those who follow them
"""
