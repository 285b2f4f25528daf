"""The embedded cluster: a small API server and a stand-in for kube-scheduler."""

from pathlib import Path

SHIPPED = Path(__file__).parents[1] / "deploy" / "files" / "kube-scheduler-config.yaml"
"""What the real kube-scheduler is deployed with; in a checkout and in the wheel."""
