"""Other people's adapters: in any language (bridge), by the interfaces of LangChain and LangGraph, and Mastra's."""
