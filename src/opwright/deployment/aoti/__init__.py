"""Models compiled by AOTInductor: one package, and a library with their operators."""
