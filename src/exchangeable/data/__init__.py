"""Binary rows, wherever they lie: packed or listed, distinct, with holes, in groups."""
