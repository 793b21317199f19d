"""What the SQL stores have in common: the verbs as coroutines over named statements, which each dialect words
for its server. SQLite and MariaDB use all of it; PostgreSQL, whose statements do more at once, uses parts."""
