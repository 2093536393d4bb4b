"""Files of the home: tables, views, vectors, locks, the accepted run."""
