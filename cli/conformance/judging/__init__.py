"""What kube-scheduler does with answers: a module for each verb, one for calls, one for framing."""

from cli.conformance.judging.judge import Judge, Reading

__all__ = ["Judge", "Reading"]
