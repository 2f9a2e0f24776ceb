"""All queries, implemented once for every mixture."""
