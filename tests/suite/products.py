"""Virtual machines on which PyTorch's own products of bfloat16 end the process: the tests run without AMX there."""

import os
from pathlib import Path

_SAID_BY_THE_PROCESSOR = Path("/proc/cpuinfo")


def survive_products():
    """Have PyTorch leave AMX alone, in this process and all that it starts, where the processor has it in name only."""
    if not _SAID_BY_THE_PROCESSOR.exists() or "amx_tile" not in _SAID_BY_THE_PROCESSOR.read_text():
        return
    from opwright.doctor.findings.matrix_products import VARIABLE, WITHOUT_AMX, are_right

    if VARIABLE not in os.environ and not are_right() and are_right({VARIABLE: WITHOUT_AMX}):
        os.environ[VARIABLE] = WITHOUT_AMX
