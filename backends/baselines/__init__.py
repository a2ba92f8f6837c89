"""The same requests hand-written on raw clients: what an adapter costs is measured against them."""
