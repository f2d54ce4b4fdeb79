"""Chorus beside its peers on one machine: see docs/benchmarks.md."""
