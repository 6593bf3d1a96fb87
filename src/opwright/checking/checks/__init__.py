"""One file for each kind of fault in an operator; the table is in `opwright.checking.judge`."""
