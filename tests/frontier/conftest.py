"""The test modules of this folder share conformance.py and memory_backend.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
