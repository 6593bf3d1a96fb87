"""One file for each subject; `table.py` lists them."""
