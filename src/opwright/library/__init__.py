"""Ready operators, each an ordinary function. They are derived and built at their first call, as any operator is."""

from opwright.library.attention import (
    capped_softmax,
    masked_softmax,
)
from opwright.library.boxes import (
    generalized_iou_loss,
)
from opwright.library.cells import (
    gru_cell,
    lstm_cell,
)
from opwright.library.distributions import (
    normal_nll,
)
from opwright.library.energies import (
    matern_kernel,
)
from opwright.library.gates import (
    bias_gelu,
    swiglu,
)
from opwright.library.losses import (
    distillation_loss,
)

__all__ = [
    "bias_gelu",
    "capped_softmax",
    "distillation_loss",
    "generalized_iou_loss",
    "gru_cell",
    "lstm_cell",
    "masked_softmax",
    "matern_kernel",
    "normal_nll",
    "swiglu",
]
