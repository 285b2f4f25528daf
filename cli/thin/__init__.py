"""A client for kubectl's plugin manager krew: explain and doctor by Python and kubectl alone.

kubectl knows the cluster and its user, and leads to the gateway, which composes all sentences. So
it imports no package that has to be installed; `tools.release.krew` makes one file of it.
"""
