"""The families of rows, one file each; its `JUDGES` lists the rows and their experiments."""
