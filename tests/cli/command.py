"""The `moorage` command for `fork`: as its script runs it."""

import sys
from pathlib import Path

from moorage_apps.command import main

if __name__ == "__main__":
    sys.argv[0] = str(Path(sys.executable).with_name("moorage"))
    main()
