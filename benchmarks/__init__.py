"""How fast and how good: datasets, workloads, load, measures."""
