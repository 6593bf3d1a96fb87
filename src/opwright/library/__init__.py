"""Ready operators, each an ordinary function. They are derived and built at their first call, as any operator is."""

from opwright.library.attention import (
    biased_softmax,
    capped_softmax,
    masked_softmax,
    rotary,
    softmax_plus_one,
)
from opwright.library.boxes import (
    complete_iou_loss,
    generalized_iou_loss,
    iou_loss,
)
from opwright.library.cells import (
    gru_cell,
    lltm_cell,
    lstm_cell,
    minimal_gru_cell,
    peephole_lstm_cell,
)
from opwright.library.distributions import (
    cauchy_nll,
    laplace_nll,
    logistic_nll,
    normal_nll,
    normals_kl,
)
from opwright.library.energies import (
    buckingham,
    lennard_jones,
    matern_kernel,
    morse,
    screened_coulomb,
)
from opwright.library.gates import (
    bias_gelu,
    bias_gelu_residual,
    dynamic_tanh,
    geglu,
    geglu_tanh,
    quick_gelu,
    soft_cap,
    squared_relu,
    swiglu,
)
from opwright.library.losses import (
    dice_loss,
    distillation_loss,
    jensen_shannon,
    log_cosh_loss,
    masked_mse,
    poisson_loss,
    poly_cross_entropy,
    smooth_cross_entropy,
    z_loss_cross_entropy,
)
from opwright.library.norms import (
    gated_rms_norm,
    gemma_rms_norm,
    rms_norm,
)

__all__ = [
    "bias_gelu",
    "bias_gelu_residual",
    "biased_softmax",
    "buckingham",
    "capped_softmax",
    "cauchy_nll",
    "complete_iou_loss",
    "dice_loss",
    "distillation_loss",
    "dynamic_tanh",
    "gated_rms_norm",
    "geglu",
    "geglu_tanh",
    "gemma_rms_norm",
    "generalized_iou_loss",
    "gru_cell",
    "iou_loss",
    "jensen_shannon",
    "laplace_nll",
    "lennard_jones",
    "lltm_cell",
    "log_cosh_loss",
    "logistic_nll",
    "lstm_cell",
    "masked_mse",
    "masked_softmax",
    "matern_kernel",
    "minimal_gru_cell",
    "morse",
    "normal_nll",
    "normals_kl",
    "peephole_lstm_cell",
    "poisson_loss",
    "poly_cross_entropy",
    "quick_gelu",
    "rms_norm",
    "rotary",
    "screened_coulomb",
    "smooth_cross_entropy",
    "soft_cap",
    "softmax_plus_one",
    "squared_relu",
    "swiglu",
    "z_loss_cross_entropy",
]
