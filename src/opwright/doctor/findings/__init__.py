"""One file for each thing that is looked at; `table.py` lists them."""
