"""Measures: tables in, tables out.

They know of no retriever and no model, so that anybody's rankings can be scored. What is declared
here holds for every corpus and configuration; it is never tuned.
"""
