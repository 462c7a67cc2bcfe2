"""How the atlas is cited, as CITATION.cff has it: in words beside a figure, and as BibTeX."""

from generators import __version__

AUTHORS = "Helix Atlas contributors"
TITLE = "Helix Atlas: which findings about GPT-2's embeddings hold in which models"
RELEASED = "2026-11-21"
META, META_BIBTEX = "atlas-citation", "atlas-bibtex"  # the names under which pages tell scripts


def in_words() -> str:
    """Return the atlas in a line, in front of which figure of it is meant."""
    return f"{AUTHORS}. {TITLE}, version {__version__}, {RELEASED[:4]}."


def bibtex(address: str | None) -> str:
    """Return the atlas as an entry for BibTeX, with its site's address where that is known."""
    return f"@misc{{helix_atlas,\n{fields(address)}\n}}"


def fields(address: str | None = None) -> str:
    said = {
        "title": f"{{{TITLE}}}",
        "author": f"{{{{{AUTHORS}}}}}",
        "year": f"{{{RELEASED[:4]}}}",
        "note": f"{{Version {__version__}}}",
        **({"url": f"{{{address}}}"} if address else {}),
    }
    return ",\n".join(f"  {name:<6} = {value}" for name, value in said.items())
