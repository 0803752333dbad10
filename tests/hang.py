"""The time limit of a test for an expected event: so long that only a hang exceeds it, on any machine.

No verdict depends on it but that one: a test that needs a moment to have passed waits for what happens then.
"""

HANG_S = 900.0
