"""memassay: conformance and benchmark harness for agent-memory stores."""

from importlib.metadata import version

__version__ = version("memassay")
