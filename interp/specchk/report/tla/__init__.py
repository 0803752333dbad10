"""A program as a TLA+ module and a configuration of TLC."""
