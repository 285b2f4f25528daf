"""Spans of cycles and binds, for those that are sampled; without tracing nothing of it is there.

cycles   what kube-scheduler asks: the span of a scheduling cycle, and of a bind
phases   filter and score phases
"""
