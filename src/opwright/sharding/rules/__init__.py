"""What the index structure of a Program says about running it on parts of its inputs; free of torch."""
