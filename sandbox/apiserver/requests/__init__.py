"""Requests about objects over HTTP: reads them, carries them out and answers."""
