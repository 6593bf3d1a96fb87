"""Hints that several refusals of a trace share: what a user can change so that kernels can be derived."""

AS_ARGUMENT = "pass it as an argument"
KEEP_OUTSIDE = "keep this operation outside of the operator"
NEW_TENSOR = "compute a new tensor instead of changing one in place"
DRAW_OUTSIDE = "draw the numbers outside of the operator, and pass them as an argument"
CHECKPOINT_AROUND = "checkpoint the call of the operator, not what is inside of it"
WIDER_DTYPE = "use a number that the dtype holds, or convert the tensor to a wider dtype first"
RETURN_CLONE = "return a copy (.clone()), or take the view outside of the operator"
