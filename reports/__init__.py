"""How results are shown; reads artefacts, knows no engine."""
