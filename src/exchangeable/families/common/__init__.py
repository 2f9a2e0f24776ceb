"""What two or more families read."""
