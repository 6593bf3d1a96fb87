"""The Python part of a wheel: a few modules that need torch alone.

They are copied into every wheel as they stand here, with the names of their imports changed, so they import nothing of
opwright but each other and what `deployment/wheels/carried.py` lists.
"""
