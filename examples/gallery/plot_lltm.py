"""
A recurrent cell
================

LLTM is the cell of PyTorch's tutorial on C++ extensions: an LSTM without a forget gate. Its element-wise part
is one kernel forward and one backward. Here it learns to remember the sign of the first number of a sequence.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import opwright


@opwright.operator
def cell_of_lltm(gates, old_cell):
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


class LLTM(torch.nn.Module):
    def __init__(self, inputs, states):
        super().__init__()
        self.states = states
        self.gates = torch.nn.Linear(inputs + states, 3 * states)
        self.last = torch.nn.Linear(states, 1)

    def forward(self, sequence):
        hidden = cell = sequence.new_zeros(sequence.shape[1], self.states)
        for x in sequence:
            hidden, cell = cell_of_lltm(self.gates(torch.cat([hidden, x], dim=1)), cell)
        return self.last(hidden)[:, 0]


# %%
# The training loop is ordinary.

torch.manual_seed(0)
model = LLTM(1, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(150):
    sequence = torch.randn(12, 64, 1)
    loss = F.binary_cross_entropy_with_logits(model(sequence), (sequence[0, :, 0] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"from {losses[0]:.2f} to {losses[-1]:.2f}, served by {cell_of_lltm.last_rung}")

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.plot(losses)
axis.set(xlabel="step", ylabel="loss", ylim=(0, None))
figure.show()
