"""Graphs and plots as SVG, and formulas as MathML, for pages. Colours are CSS variables that follow light and dark."""
