"""Chooses fusion constants and routing on one part of the queries and measures them on the rest."""
