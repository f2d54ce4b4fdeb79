"""Chorus beside its peers on one machine: see docs/guides/measuring.md."""
