"""
Rotary positions
================

Attention learns where a token stands by rotating pairs of numbers of queries and keys, by an angle that grows
with the position. The product of a query and a key then depends on their distance alone, which the picture
shows.
"""

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.operator
def rotary(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


torch.manual_seed(0)
positions, width = 128, 64
angles = torch.outer(torch.arange(positions), 10_000 ** (-torch.arange(width // 2) / (width // 2)))
query, key = torch.randn(width).expand(positions, width), torch.randn(width).expand(positions, width)
rotated = [rotary(x, angles.cos(), angles.sin()) for x in (query, key)]
torch.testing.assert_close(rotated[0], rotary.reference(query, angles.cos(), angles.sin()))
print("served by", rotary.last_rung)

# %%
# One query and one key, at all positions: the products are the same along every diagonal.

products = rotated[0] @ rotated[1].T
torch.testing.assert_close(products[1:, 1:], products[:-1, :-1], rtol=1e-3, atol=1e-3)
figure, axis = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
image = axis.imshow(products)
axis.set(xlabel="position of the key", ylabel="position of the query", title="query · key")
figure.colorbar(image)
figure.show()
