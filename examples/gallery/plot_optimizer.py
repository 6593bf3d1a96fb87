"""
An optimizer of its formula
===========================

The update of one parameter makes an optimizer: groups, saving, mixed precision and one kernel over all
parameters come with it. Here is Lion with a sign that is soft.
"""

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.optimizer(state=("average",))
def SoftSign(param, grad, average, step, *, lr=1e-2, beta=0.9, softness=0.1):
    average = beta * average + (1 - beta) * grad
    return param - lr * average / (average.abs() + softness), average


# %%
# Three optimizers go down the same valley, Rosenbrock's.


def valley(x, y):
    return (1 - x) ** 2 + 20 * (y - x * x) ** 2


def descend(make):
    position = torch.tensor([-1.2, 1.0], requires_grad=True)
    optimizer = make([position])
    path = [position.tolist()]
    for _ in range(300):
        optimizer.zero_grad()
        valley(*position).backward()
        optimizer.step()
        path.append(position.tolist())
    return torch.tensor(path)


paths = {
    "SoftSign": descend(lambda parameters: SoftSign(parameters, lr=2e-2, softness=1.0)),
    "opwright.optim.Lion": descend(lambda parameters: opwright.optim.Lion(parameters, lr=2e-2)),
    "opwright.optim.AdamW": descend(lambda parameters: opwright.optim.AdamW(parameters, lr=5e-2)),
}
xs, ys = torch.linspace(-1.8, 1.8, 100), torch.linspace(-0.8, 2.2, 100)
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.contour(xs, ys, valley(xs[None], ys[:, None]).log1p(), levels=15, linewidths=0.5)
for name, path in paths.items():
    axis.plot(*path.T, ".-", markersize=3, linewidth=0.8, label=f"{name}, to {valley(*path[-1]):.3f}")
axis.legend()
figure.show()
