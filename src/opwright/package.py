"""Where this package is installed."""

from pathlib import Path

PACKAGE = Path(__file__).parent
