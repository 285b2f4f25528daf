"""Reads an installation once: objects of the cluster, kube-schedulers, processes, rights."""
