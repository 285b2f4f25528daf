"""A process for tests of those that run processes: `python -m tests.cli.up.tiny DEED`."""

import os
import sys
import time

DEED = sys.argv[1]

ADDRESS = "here"
if DEED == "forks":
    ADDRESS = str(os.fork())  # the child's id
    if ADDRESS == "0":
        time.sleep(3600)
if DEED not in ("silent", "breaks"):
    sys.stdout.write(f'{{"event": "serving", "address": "{ADDRESS}"}}\n')
    sys.stdout.flush()
if DEED in ("dies", "breaks"):
    sys.exit("these are its last words")
time.sleep(3600)
