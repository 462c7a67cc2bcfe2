"""The members of `stdlib-family`: a table. All follow one recipe; each row says the one thing that differs in it."""

from dataclasses import dataclass, replace

from models.training.recipe import Recipe

# One thread, so that the sums, and with them all digits, depend on no machine's number of cores; products in
# bfloat16, which take two thirds of the time.
RECIPE = Recipe(steps=3_000, threads=1, precision="bfloat16")


@dataclass(frozen=True)
class FamilyMember:
    """One training: its folder's name, how it knows positions, its recipe, and in words what differs."""

    name: str
    scheme: str  # a key of schemes.SCHEMES
    recipe: Recipe
    differs: str

    def trained_for(self, steps: int) -> "FamilyMember":
        """The same member after `steps` steps in all."""
        return replace(self, recipe=replace(self.recipe, steps=steps))


OTHER_SEED = "another seed: other first weights, and another order of the text"

MEMBERS = (
    FamilyMember("learned", "learned", RECIPE, "nothing: this is GPT-2, with a position embedding P that is learned"),
    FamilyMember("none", "none", RECIPE, "P is held at zero: only the causal mask tells positions apart"),
    FamilyMember(
        "rotary",
        "rotary",
        RECIPE,
        "no P: queries and keys are turned by their position (GPT-NeoX, with attention before MLP as in GPT-2; all "
        "channels of a head are turned)",
    ),
    FamilyMember(
        "alibi",
        "alibi",
        RECIPE,
        "no P: attention scores fall linearly with distance, at a slope of its own in every head (ALiBi as "
        "published: slopes 1/4 to 1/256); two more things differ, as this is MPT: no biases, exact GELU",
    ),
    FamilyMember(
        "alibi-falcon",
        "alibi-falcon",
        RECIPE,
        "no P: ALiBi with the slopes that Falcon has, those published divided by the root of a head's width",
    ),
    FamilyMember(
        "sinusoidal",
        "sinusoidal",
        RECIPE,
        "P is a fixed table of sines and cosines, scaled to the root mean square that a learned P starts with",
    ),
    FamilyMember(
        "rank-three",
        "rank-three",
        RECIPE,
        "P is learned as a product of an n x 3 and a 3 x d matrix: three dimensions are all it can have",
    ),
    FamilyMember("no-decay", "learned", replace(RECIPE, weight_decay=0.0), "no weight decay, on no parameter"),
    FamilyMember(
        "context-64",
        "learned",
        replace(RECIPE, n_ctx=64, batch=64),
        "a context of 64 tokens in place of 256, and 64 windows a step in place of 16, which are as many tokens",
    ),
    FamilyMember("learned-seed-1", "learned", replace(RECIPE, seed=1), OTHER_SEED),
    FamilyMember("learned-seed-2", "learned", replace(RECIPE, seed=2), OTHER_SEED),
)


def named(name: str) -> FamilyMember:
    """The member of that name.

    Raises:
        ValueError: there is none; says which there are.
    """
    for member in MEMBERS:
        if member.name == name:
            return member
    raise ValueError(f"stdlib-family has no member {name!r}; it has {', '.join(member.name for member in MEMBERS)}.")
