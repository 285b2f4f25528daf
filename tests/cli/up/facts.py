"""A process that tells what it sees, then ends: `python -m tests.cli.up.facts END`."""

import json
import os
import signal
import sys
from pathlib import Path

facts = {
    "arguments": sys.argv[1:],
    "directory": str(Path.cwd()),
    "first": sys.path[0],
    "stdin": sys.stdin.read(),
    "session": os.getsid(0) == os.getpid(),
    "variable": os.environ["MOORAGE_TEST_FACT"],
    "name": Path("/proc/self/comm").read_text().strip(),
    "descriptors": sorted(int(each.name) for each in Path("/proc/self/fd").iterdir())[:3],
    "server": os.getppid(),
}
sys.stdout.write(json.dumps(facts))
END = sys.argv[1]
if END.isdigit():
    sys.exit(int(END))
if END == "said":
    sys.exit("no such thing")
if END == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
raise ValueError(END)
