"""What a function reads from outside its arguments: globals, closures, attributes, containers, modes of torch.

    function ─reach→ Reads (guards, hazards) ─holds→ unchanged?    ─identity→ a digest, for records on disk

A guard is one value that a trace treats as a constant: how to fetch it again, and what it was. Kernels serve a call
only while all guards hold. A hazard is a line that reads something no guard can compare, such as a clock; a trace that
runs such a line is refused.
"""
