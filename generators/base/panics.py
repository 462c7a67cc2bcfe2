def raise_unless_panic(error: BaseException) -> None:
    """Re-raise an error unless it is an Exception or the panic of a Rust library, which is no Exception."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
