"""What a null is called in sentences. Results store the names by which they were measured."""

IN_WORDS = {
    "matrices with the same spectrum, turned at random": "random rotations of the matrix",
    "matrices with their channels in another order": "random permutations of the matrix's channels",
    "channels permuted within every layer": "channels permuted within each layer",
    "featureless curves as slow to forget as P in channels as loud as its own": "random curves matched in "
    "persistence and channel scale",
    "featureless curves as smooth as P in channels as loud as its own": "random curves matched in smoothness and "
    "channel scale",
    "featureless curves as smooth as P": "random curves as smooth as P",
    "curves that begin P's waves at other times": "P's own waves with random phases",
    "reorderings of P's rows": "P's rows in random order",
    "the rows before in random order": "the earlier rows in random order",
    "streams turned at random": "random rotations of the residual stream",
    "offsets shuffled within every query": "offsets shuffled within each query",
    "the best head's weights on keys drawn at random": "the best head on random keys",
    "frequencies that only drift along the ids as the real ones do": "frequencies that only drift along the ids",
    "positions with their channels exchanged at random": "random permutations of the channels",
    "tokens with their channels exchanged at random": "random permutations of the channels",
    "tokens of this spectrum about zero, whose mean is an accident": "tokens with this spectrum, centered at zero",
    "planes of tokens turned at random": "random planes",
    "the largest of axes turned at random": "the largest of random axes",
    "as many tokens drawn at random": "random tokens",
    "the best axes of tokens turned at random": "the best of random axes",
    "positions turned at random against the tokens": "random rotations of the positions",
    "tokens turned at random against the positions": "random rotations of the tokens",
    "correlations with the channels of P turned at random": "random rotations of P",
    "channels of P and E turned together at random": "random rotations of P and E together",
    "channels of P turned at random": "random rotations of P",
    "channels picked at random": "random channels",
    "means of this length that point anywhere": "means of this length in random directions",
    "lists drawn at random": "random lists",
    "curves as smooth as this one": "random curves as smooth",
    "means of positions turned at random": "random rotations of the position means",
    "shufflings of heads within layers": "heads shuffled within layers",
    "heads exchanged within their layers": "heads shuffled within layers",
}


def in_plain_words(text: str) -> str:
    """Return a sentence, or the name of a null, with the names that results store replaced.

    >>> in_plain_words("Streams turned at random give 0.1.")
    'Random rotations of the residual stream give 0.1.'
    """
    for stored, plain in IN_WORDS.items():  # longer names come before names they contain
        text = text.replace(stored, plain).replace(_capital(stored), _capital(plain))
    return text


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
