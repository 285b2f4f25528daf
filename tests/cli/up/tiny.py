"""A process for tests of those that run processes: `python -m tests.cli.up.tiny DEED`."""

import sys
import time

DEED = sys.argv[1]

if DEED != "silent":
    sys.stdout.write('{"event": "serving", "address": "here"}\n')
    sys.stdout.flush()
if DEED == "dies":
    sys.exit("these are its last words")
time.sleep(3600)
