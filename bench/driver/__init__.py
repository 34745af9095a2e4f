"""The benchmark: systems side by side under the same loads, and what came of it.
Standard library only."""
