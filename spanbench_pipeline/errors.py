"""The two errors a person meets, and what each one means for the exit code."""


class InputError(Exception):
    """Wrong input or configuration (exit code 2).

    The message is the whole of what the person sees: it names the file, line, document or query
    that is wrong and says what to do about it. No traceback is printed.
    """


class NotMeasured(Exception):
    """Something a configuration needs is absent, such as model weights.

    Never a failure of the run and never a zero: the configuration reads
    ``not measured: <message>`` wherever its figures would stand.
    """
