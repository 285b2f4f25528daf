"""The replicas of filter and scorer: one session each, kept in step with the cluster state.

filters, scorers  what a cycle asks, whole or in shards, and how answers become verdicts and scores
set               who takes part, and the sessions with them
call, latency     one question to one replica, and to a further one if that is slow or lost
session, feed     a stream to one replica; changes of the state as messages
sharding          into how many shards it pays to split a cycle
kinds             how the kinds of service differ
rollout, reload   another policy, made ready beside the active one
"""
