"""Providers: one module for each API, and the classifier of their refusals."""
