"""One file for each kind of fault of an operator; `opwright.checking.judge` has the table."""
