"""How an engine does it: one file per engine."""
