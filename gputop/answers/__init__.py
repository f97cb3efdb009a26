"""Answers for programs: frozen structs, one schema each, made purely from a view of the fleet."""
