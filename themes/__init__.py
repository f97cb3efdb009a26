"""Colour themes: TOML files beside this module and in the user's folder, read by one loader."""
