"""How long a test waits for what must come: so long that something that is later hangs, on any machine.

No verdict depends on it but that one: a test that needs a moment to have passed waits for what happens then.
"""

HANG_S = 900.0
