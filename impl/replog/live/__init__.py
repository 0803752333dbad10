"""Recordings of running brokers: written by each process (`recorder`), put in one order (`merging`)."""
