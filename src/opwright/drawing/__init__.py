"""Graphs and plots as SVG and formulas as MathML, for pages. Their colours are CSS variables, which follow light and dark."""
