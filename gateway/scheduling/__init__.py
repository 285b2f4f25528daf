"""Runs cycles: answers what kube-scheduler asks, one pod at a time, in the order of arrival.

scheduler   from the call to the verdicts, the scores and the records; binds
claims      nodes that pods hold from their cycle on
nominated   counts pods that are nominated for a node
recheck     waits for newer state before a pod is rejected once more
rejected    which pods found no node, and when they are tried again
bind_check  asks the filter plugins again at the bind, if their verdict may be outdated
queue       gives each cycle its turn
tracing     spans of cycles and binds
metrics     what is counted about cycles
"""
