"""Textual widgets that draw rows and know nothing of where they come from."""
