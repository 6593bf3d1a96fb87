"""Why public tensor types do something else than dense tensors: by regular expressions of what coverage says."""

from __future__ import annotations

OF_AO = {
    "dtype torch.float32, not": "Only the device is converted, and the dtype that was asked for is silently left out.",
    "dequantize": "torchao defines the method `dequantize()`, and not the function.",
}
OF_MASKED = {
    "_masked_(mask|data)": "A plain tensor that comes out is made a MaskedTensor without data and mask.",
    "arg(max|min).*dtype": "Indices are masked like values, in the dtype of these.",
    "is_sparse_csr": "MaskedTensor defines a method of the name, where torch has an attribute.",
    "__setitem__": "An element of a MaskedTensor is a copy, so that what is written to it is lost.",
    "to_dense: with dtype": "The dtype is left out.",
    "elements are masked": "Padding is masked, where dense tensors have zeros.",
    "(rsub|sub)\\b": "There is `sub` and no `rsub`; `-` between two MaskedTensors uses `sub`.",
    "round": "`torch.special.round` gives `decimals=`, which functions of one argument do not take.",
    "where": "`Tensor.where` calls itself without end.",
    "does not take (keepdim|dtype)": "They are taken together with `dim` only.",
    "does not take (unbiased|correction)": "Reductions take `dim`, `keepdim` and `dtype` alone.",
}
OF_NESTED = {
    "is_nested": "It is one.",
    "shape.__get__": "The size of the ragged dimension is a symbol, also where all sequences have one length.",
    "native_layer_norm": "Mean and deviation come out as plain tensors, of the sequences in a row.",
    "atan2.out": "A plain `out=` is resized to the sequences in a row.",
    "rsub|sub\\b": "There is `sub` and no `rsub`.",
}
UNWRAPPED = {
    "clone|detach": "Only the methods `clone`, `detach`, `to` and `requires_grad_` keep the type, not the functions."
}
OF_INT8 = {
    **OF_AO,
    "invalid for input of size 0": "Parts without elements cannot be dequantised.",
}
OF_FLOAT8 = {
    **OF_AO,
    "block_size": "`split` writes the block size of the parts into the list that the tensor itself holds.",
}
