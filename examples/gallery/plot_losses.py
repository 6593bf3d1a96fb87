"""
A loss with smoothing and a mask
================================

Cross entropy with smoothed labels over the tokens of a batch, some of which are padding. The function is
written with indices and a mask, as one thinks of it.
"""

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.operator
def smoothed_loss(logits, labels, mask, smoothing: float = 0.1):
    logs = torch.log_softmax(logits, dim=-1)
    chosen = logs.gather(-1, labels[:, None])[:, 0]
    each = -(1 - smoothing) * chosen - smoothing * logs.mean(-1)
    return (each * mask).sum() / mask.sum()


torch.manual_seed(0)
logits = torch.randn(64, 100, requires_grad=True)
labels, mask = torch.randint(100, (64,)), (torch.rand(64) > 0.25).float()
loss = smoothed_loss(logits, labels, mask)
(gradient,) = torch.autograd.grad(loss, logits)
(expected,) = torch.autograd.grad(smoothed_loss.reference(logits, labels, mask), logits)
torch.testing.assert_close(gradient, expected)
print(f"loss {loss.item():.3f}, served by {smoothed_loss.last_rung}")

# %%
# Smoothing is a number of the call. It changes from call to call, without a kernel for each value. The more
# smoothing there is, the sooner confidence is punished.

confidence = torch.linspace(0, 12, 60)
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for smoothing in (0.0, 0.05, 0.1, 0.2):
    rows = torch.zeros(60, 100)
    rows[:, 3] = confidence
    one = torch.ones(1)
    losses = [smoothed_loss(row[None], torch.tensor([3]), one, smoothing).item() for row in rows]
    axis.plot(confidence, losses, label=f"smoothing {smoothing}")
axis.set(xlabel="logit of the right class", ylabel="loss", ylim=(0, 5))
axis.legend()
figure.show()
