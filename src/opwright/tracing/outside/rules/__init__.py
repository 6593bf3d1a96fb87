"""One rule for each kind of value: the guards of a value, and the ways to what it holds.

classes, abstract   functions   containers, contents   objects, layers   tensors
"""
