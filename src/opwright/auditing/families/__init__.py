"""The families of rows, one file each: `JUDGES` in each lists the rows with their experiments."""
