"""Score-based systems: NOTEARS and NoLeaks, and the schedules of their steps."""
