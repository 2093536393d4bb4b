"""Runs the command line as ``python -m spanbench_pipeline.cli``."""

import sys

from spanbench_pipeline.cli.main import main

sys.exit(main())
