"""Operators on several machines: which placements of their arguments they can be run on, shard by shard."""
