"""What was decided about each pod, and why: kept in memory, and answered to whoever may read pods.

log          the latest attempts of the newest pods, and what became of each
nodes        the verdict and the scores of each node, for the newest attempts
sentences    what a decision, or the trial placement of a group, amounts to in words
explanation  why a pod is where it is: the one object, and what it is made of
explaining   gathers that; why finds the reason, rejections who rejected nodes, advice what helps
query        what can be asked for, and the pages that answer
routes       all that is kept of cycles, on the admin port; decisions as they come
"""
