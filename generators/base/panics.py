"""Errors of libraries in Rust that are no Exception."""


def raise_unless_panic(error: BaseException) -> None:
    """Raise an error again unless it is an Exception or a panic of a library in Rust, which isn't one."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
