"""Panes: pure functions from a view of the fleet to rows. The app puts them on screen."""
