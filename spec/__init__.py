"""What is true of an agent-memory store: types, operations, the reference model, clauses. No I/O."""
