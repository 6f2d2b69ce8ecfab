"""The locks of `.aiflow/locks/` and the control files of `.aiflow/control/`."""
