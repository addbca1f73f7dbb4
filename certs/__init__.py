"""Certificate authority and serving certificates."""
