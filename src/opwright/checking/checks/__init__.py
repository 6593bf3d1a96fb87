"""One file for each idea of what can be wrong with an operator; `opwright.checking.judge` has the table of them."""
