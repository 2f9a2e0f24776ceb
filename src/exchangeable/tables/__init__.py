"""Tables in and out: files become rows of ones and zeros, and answers become files."""
