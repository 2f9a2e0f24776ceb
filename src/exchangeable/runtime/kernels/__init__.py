"""How compiled loops are declared, compiled and kept, and what they are made of."""
