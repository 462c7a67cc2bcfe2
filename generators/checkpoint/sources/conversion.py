"""Older files converted to safetensors: the pull request that the hub's own bot opened, as transformers finds it."""

from itertools import islice

TITLE = "Adding `safetensors` variant of this model"
BOT = "SFconvertbot"  # anyone may open a pull request of that title, with any weights
MOST_LOOKED_AT = 20  # pull requests: the bot opens one per state of the files


def conversion(repo: str, commit: str) -> tuple[str, str, frozenset[str]] | None:
    """Return revision, commit and file names of a repository's conversion to safetensors, None where there is none.

    That is an open pull request of the bot that stands right on top of `commit`, so that what it converted are the
    files of that commit. transformers (`safetensors_conversion.py`) takes the same, and asks for one where there is
    none; the atlas asks for nothing.

    Raises:
        Exception: whatever the hub's client raises where the hub refuses or can't be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    pulls = api.get_repo_discussions(repo, author=BOT, discussion_type="pull_request", discussion_status="open")
    for pull in islice(pulls, MOST_LOOKED_AT):
        revision = pull.git_reference
        if pull.title != TITLE or pull.author != BOT or not pull.is_pull_request or revision is None:
            continue
        commits = [each.commit_id for each in islice(api.list_repo_commits(repo, revision=revision), 2)]
        if commits[1:] == [commit]:
            info = api.model_info(repo, revision=commits[0])
            return revision, commits[0], frozenset(file.rfilename for file in info.siblings or ())
    return None
