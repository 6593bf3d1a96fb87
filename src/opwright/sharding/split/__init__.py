"""Rules that split an operator at reductions in its middle: local part, all-reduce, rest."""
