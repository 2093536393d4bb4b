"""The ruler held to other rulers: hand-made cases, brute force, formulas, another library, sums.

Nothing here measures anything of its own that is reported of a corpus. Every comparison goes
through the same functions, in the same way, as ``spanbench score``.
"""
