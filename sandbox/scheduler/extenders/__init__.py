"""Extenders' requests and answers, byte for byte as kube-scheduler writes and reads them."""
