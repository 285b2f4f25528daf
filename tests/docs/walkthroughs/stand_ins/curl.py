"""`curl -s URL` where curl is missing."""

import sys
from urllib.request import urlopen

url = sys.argv[-1]
with urlopen(url if "://" in url else f"http://{url}") as answer:
    sys.stdout.write(answer.read().decode())
