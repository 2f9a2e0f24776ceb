"""Code shared by several families."""
