"""How engines are started, reached and stopped."""
