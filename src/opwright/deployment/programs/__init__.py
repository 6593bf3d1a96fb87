"""A model as a program: exported, with its operators as calls; and the folder that a deployment is written to."""
