"""What two or more families share: tables by count, log-linear passes, forests, smoothing."""
