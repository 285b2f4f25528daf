"""Nothing of this folder runs unless a real control plane is wanted: `make e2e`."""

import os

collect_ignore_glob = [] if os.environ.get("MOORAGE_E2E") else ["*test_*.py"]
