"""The replicas of filter and scorer: one session each, kept in step with the cluster state.

cache, cached      what holds for equal pods; replicas are asked about the rest
client             asks filters or scorers about a phase of a cycle, whole or in shards
reading            answers as verdicts and scores
sharding           into how many shards it pays to split a cycle, and the answers about them as one
call, latency      one question to one replica, and to a further one if that is slow or lost
set                who takes part, and the sessions with them
session, feed      a stream to one replica; changes of the state as messages
kinds              how the kinds of service differ
rollout, reload    another policy, made ready beside the active one
"""
