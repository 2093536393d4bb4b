"""Spans, tables, evaluation sets, errors, text: what everything else rests on."""
