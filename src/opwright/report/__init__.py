"""Render results as tables, from their JSON alone; and display them at a prompt or in a notebook."""
