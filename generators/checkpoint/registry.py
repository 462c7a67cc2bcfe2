"""The models the atlas covers (`models.yml` -> `Model`) and the series that they form (`series.yml`)."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from generators.base.errors import InputError
from generators.base.files import read_limited
from generators.base.progress import all_shown

SLUG = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
HUB_ID = re.compile(r"[A-Za-z0-9][\w-]*(\.[\w-]+)*/[A-Za-z0-9][\w-]*(\.[\w-]+)*")
LONGEST_NAME = 96
LARGEST, MOST_ALIASES = 2**20, 200  # limits of a registry: bytes and YAML aliases
SERIES = "series.yml"
MERGE = "tag:yaml.org,2002:merge"
ON_OWN_SAMPLES = "--own-samples"  # suffix of the name for stored runs on a model's own samples

RESERVED = "index"  # models/index/ can't be a model's page


def _has_a_page(name: str) -> str:
    if name == RESERVED:
        raise ValueError(f"{RESERVED!r} can't be the address of a page")
    return name


Slug = Annotated[
    str, StringConstraints(pattern=f"^{SLUG.pattern}$", max_length=LONGEST_NAME), AfterValidator(_has_a_page)
]
HubId = Annotated[str, StringConstraints(pattern=f"^{HUB_ID.pattern}$", max_length=LONGEST_NAME)]
# MkDocs puts titles into its menus as they are, so a title may hold nothing that a page could read as markup.
Title = Annotated[
    str, StringConstraints(pattern=r"^[\w ,.:;()+/'’–-]+$", min_length=1, max_length=200, strip_whitespace=True)
]
# No terminal escapes and no marks that change the direction of text.
Text = Annotated[
    str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True), AfterValidator(all_shown)
]


class Entry(BaseModel):
    """Immutable, validated plain data."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Located(Entry):
    def in_words(self) -> str:
        return " ".join(f"{key} {value}" for key, value in self.model_dump(exclude_defaults=True).items())


class HubSource(Located):
    """A repository on the model hub; `revision` is a branch, a tag or a commit."""

    hub: HubId
    revision: str = Field(default="main", pattern=r"^\w[\w/-]*(\.[\w/-]+)*$")


class PackageSource(Located):
    """An installed Python package that carries a checkpoint."""

    package: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")


class FolderSource(Located):
    """A folder with a checkpoint, as a path relative to `models.yml`."""

    folder: Path


Place = int | Title  # place of a model in a series
Frequency = Literal["counts", "wordfreq", "index"]
Source = HubSource | PackageSource | FolderSource
Stack = Literal["encoder", "decoder", "text", "vision"]


class Model(Entry):
    """One model: what it is called, where its weights are, what is known about it."""

    name: Slug  # what commands call it, and the address of its page
    title: Title  # what pages call it
    sources: tuple[Source, ...] = Field(min_length=1)  # tried in this order
    family: str | None = None  # only where config.json does not tell it
    stack: Stack | None = None  # which half of a checkpoint that holds two models; the name ends with --STACK
    frequency: Frequency = "index"  # the best source of token frequencies that this model has
    counts: Path | None = None  # as `atlas count-tokens` writes them; a path relative to `models.yml`
    group: Title | None = None  # models of a group are listed together on pages
    recipe: Title | None = None  # models of one recipe (other sizes, seeds or halves of it) count once
    adds: Text | None = None  # to the others, in a line: a scheme, a recipe, a size or a domain
    only_in_series: bool = False  # it has a page, is folded or marked in lists of models, and counts as none
    parameters: int | None = Field(
        default=None, gt=0
    )  # where its sizes don't tell; below 5 million, it isn't counted
    licence: Text | None = None  # of the weights
    notes: Text | None = None  # what it is and was trained on, in a sentence or two

    @property
    def whole(self) -> str:
        """Return the name of the checkpoint that holds the model: its own, without the half that it is."""
        name = self.name.removesuffix(ON_OWN_SAMPLES)
        return name.removesuffix(f"--{self.stack}") if self.stack else name


AT = "{at}"  # placeholder in a pattern for a member's place


class Pattern(Entry):
    """Common fields of members without an entry in `models.yml`; `{at}` stands for a member's place."""

    name: str
    title: str
    sources: tuple[dict[str, str], ...] = Field(min_length=1)
    family: str | None = None
    frequency: Frequency = "index"
    licence: Text | None = None

    def at(self, place: Place, root: Path) -> Model:
        """Return the member at a place; its folders are meant from `root`."""
        filled = [{key: value.replace(AT, str(place)) for key, value in source.items()} for source in self.sources]
        model = Model.model_validate(
            {
                **self.model_dump(exclude={"name", "title", "sources"}),
                "name": self.name.replace(AT, str(place)),
                "title": self.title.replace(AT, str(place)),
                "sources": filled,
                "only_in_series": True,
            }
        )
        return _rooted(model, root)


class Member(Entry):
    """One model of a series: an entry of `models.yml`, and what it is called or where it is in the series."""

    model: Slug
    at: Place


class Series(Entry):
    """Models that differ in one thing.

    `along` says in what: the seed of one recipe, something that was changed (the first member is the reference,
    which it was changed from), or the step of one training (members are numbers then, from the first on). Members
    are entries of `models.yml`, or made by a pattern: those have no page of their own.
    """

    name: Slug
    title: Title
    along: Literal["seed", "change", "step"]
    question: Text = Field(description="What is asked of these models.")
    notes: Text | None = None
    seeds: Slug | None = Field(
        default=None, description="The series of seeds of the reference: how far effects differ without any change."
    )
    members: tuple[Member, ...] = ()
    each: Pattern | None = None
    places: tuple[int, ...] = Field(default=(), alias="at")

    @model_validator(mode="after")
    def _has_members(self) -> Self:
        if bool(self.members) == bool(self.each and self.places):
            raise ValueError("a series has members, or each and at")
        found = [member.at for member in self.members] or list(self.places)
        if len(set(found)) < len(found):
            raise ValueError("two members are at the same place")
        if len(found) < 2:
            raise ValueError("one model is no series")
        if self.along == "step" and not all(isinstance(place, int) for place in found):
            raise ValueError("members along a training are at numbers: their steps")
        if self.along == "step" and found != sorted(found, key=int):
            raise ValueError("steps of a training go up")
        if self.seeds is not None and self.along != "change":
            raise ValueError("seeds go with a series along a change")
        return self

    @property
    def reference(self) -> Place | None:
        """Return where the member is that the others were changed from; None along anything but a change."""
        return self.members[0].at if self.along == "change" and self.members else None

    @property
    def own(self) -> bool:
        """Return whether its models are its own, without an entry in `models.yml` or a page."""
        return self.each is not None


class Registry(Entry):
    """All models of the atlas, in the order in which pages list them, and the series that they make.

    `root` is the folder from which the folders of models are meant.
    """

    models: tuple[Model, ...]
    series: tuple[Series, ...] = ()
    root: Path = Path()

    def find(self, name: str) -> Model | None:
        return next((model for model in self.known() if model.name == name), None)

    def known(self) -> Iterator[Model]:
        yield from self.models
        for one in self.series:
            yield from (model for _, model in self.members(one) if one.own)

    def find_series(self, name: str) -> Series | None:
        return next((one for one in self.series if one.name == name), None)

    def members(self, series: Series) -> list[tuple[Place, Model]]:
        if series.each is not None:
            return [(place, series.each.at(place, self.root)) for place in series.places]
        named = {model.name: model for model in self.models}
        return [(member.at, named[member.model]) for member in series.members]


def load_registry(path: Path) -> Registry:
    """Read `models.yml`, and the `series.yml` next to it. Raises InputError: says what is wrong in which."""
    beside = path.parent / SERIES
    models = _read(path, "models").models
    series = _read(beside, "series").series if beside.is_file() else ()
    folders = path.resolve().parent
    registry = Registry(models=tuple(_rooted(model, folders) for model in models), series=series, root=folders)
    _check_names(registry, path, beside)
    return registry


class _Distinct(yaml.SafeLoader):
    """YAML in which no mapping has a key twice: of two entries written as one, the first would vanish.

    What an alias (`*name`) stands for contains none itself: nine lines could come to gigabytes.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._named, self._aliases = 0, 0  # named ancestor nodes; aliases so far

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            self._aliases += 1
            if self._named or self._aliases > MOST_ALIASES:
                why = "is part of what has a name itself" if self._named else f"is one of over {MOST_ALIASES} aliases"
                raise yaml.YAMLError(f"*{event.anchor} {why}")
            return super().compose_node(parent, index)
        named = isinstance(event, yaml.NodeEvent) and event.anchor is not None
        self._named += named
        node = super().compose_node(parent, index)
        self._named -= named
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != MERGE]
        count = Counter(key.value for key in keys)
        for key in keys:
            if count[key.value] > 1:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} is there twice", problem_mark=key.start_mark)
        return super().construct_mapping(node, deep)


def _read(path: Path, kind: Literal["models", "series"]) -> Registry:
    content: Any = None
    try:
        content = yaml.load(read_limited(path, LARGEST).decode("utf-8"), _Distinct)
        return Registry.model_validate({"models": [], kind: content})
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The registry {path} can't be read: {getattr(error, 'strerror', error)}.") from error
    except ValidationError as error:
        raise InputError(f"The registry {path} is wrong: {explain(error, content)}.") from error
    # An impossible date, number or boolean; an empty one is an index or an attribute that isn't there.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(f"The registry {path} isn't valid YAML: {' '.join(str(error).split())}.") from error


def _check_names(registry: Registry, models: Path, series: Path) -> None:
    names = [model.name for model in registry.models]
    made = []
    for one in registry.series:
        for member in one.members:
            if member.model not in names:
                raise InputError(f"{series}: the series {one.name!r} names {member.model!r}, which {models} has not.")
        try:
            members = registry.members(one)
        except ValidationError as error:
            raise InputError(f"{series}: a model of the series {one.name!r} is wrong: {explain(error)}.") from error
        made += [model.name for _, model in members if one.own]
        seeds = None if one.seeds is None else registry.find_series(one.seeds)
        if one.seeds is not None and (seeds is None or seeds.along != "seed"):
            raise InputError(f"{series}: the seeds of the series {one.name!r} are {one.seeds!r}, no series of seeds.")
    for name, count in Counter([*names, *made, *(one.name for one in registry.series)]).items():
        if count > 1:
            raise InputError(f"The registry {models} names {name!r} twice.")


def slug(name: str) -> str:
    """Return `name` as a lower-case path component; empty if nothing of it can stay, or the name is reserved."""
    found = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:LONGEST_NAME].strip("-._")
    return "" if found == RESERVED else found


def explain(error: ValidationError, content: Any = None) -> str:
    fault = error.errors()[0]
    place, name = fault["loc"], ""
    with suppress(LookupError, TypeError, ValueError):  # no entry, no name, or a number of thousands of digits
        name = f" ({str(content[place[1]]['name'])[:LONGEST_NAME]!r})"
    return f"{'.'.join(map(str, place))}{name}: {fault['msg']}"


def _rooted(model: Model, root: Path) -> Model:
    sources = tuple(
        FolderSource(folder=root / source.folder) if isinstance(source, FolderSource) else source
        for source in model.sources
    )
    counts = None if model.counts is None else root / model.counts
    return model.model_copy(update={"sources": sources, "counts": counts})
