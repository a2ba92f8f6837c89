"""Stores with one realistic fault each: they measure what the suite catches."""
