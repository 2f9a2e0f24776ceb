"""Binary rows wherever they lie: packed or listed, with holes, distinct, in groups."""
