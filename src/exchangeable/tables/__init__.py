"""Reading tables, coding their columns as binary variables, and writing answers."""
