"""python -m examples.intranet"""

import sys

from examples.intranet.serve import main

sys.exit(main())
