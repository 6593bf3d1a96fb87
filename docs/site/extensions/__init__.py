"""Extensions of Sphinx for the site of this project."""
