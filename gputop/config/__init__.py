"""Settings: where they come from and what they are. No click, no Textual, no client is imported here."""
