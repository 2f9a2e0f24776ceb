"""Standard errors, bootstrap tests and sampling designs."""
