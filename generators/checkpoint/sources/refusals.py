"""What the hub's refusals mean, and what to do about them."""

import os
from typing import Any

SHOWN = 200  # characters of what the hub says itself


def refusal(response: Any, hub_id: str, what: str) -> str:
    """Return a sentence on why the hub refuses something of a repository; `what` names it.

    The hub answers 401 where a token is missing, wrong or expired, and 403 where it is right but doesn't suffice.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported, but lazily

    page, code, status = f"{constants.ENDPOINT}/{hub_id}", response.headers.get("x-error-code"), response.status_code
    said = response.headers.get("x-error-message", "")
    has_token = "authorization" in build_hf_headers()
    if status == 401 and has_token:
        return (
            f"The hub doesn't accept {_token()}: it is wrong or has expired, so {page} can't be read. Make a new one "
            f"at {constants.ENDPOINT}/settings/tokens and {_log_in()}."
        )
    if "fine-grained" in said:
        return (
            f"{page} is gated, and {_token()} isn't allowed to read gated models. Allow it at "
            f"{constants.ENDPOINT}/settings/tokens, or use another token: {_log_in()}."
        )
    if code == "GatedRepo" and has_token:
        return (
            f"{page} is gated, and the account of {_token()} has no access to it. Ask for access on that page; to "
            f"use another account, {_log_in()}."
        )
    if code == "GatedRepo":
        return f"{page} is gated. Ask for access on that page, then log in: `hf auth login`."
    if code == "RepoNotFound" or status == 401:
        who = f"{_token()} can't see it. To use another account, {_log_in()}"
        return (
            f"There is no model at {page}, or {who if has_token else 'it is private: log in with `hf auth login`'}."
        )
    if code == "RevisionNotFound":
        return f"{what} can't be read: there is no such revision at {page}."
    if code == "EntryNotFound":
        return f"{what} can't be read: there is no such file at {page}."
    return f"{what} can't be read: the hub answers {status}{f' ({said[:SHOWN]})' if said else ''}."


def _is_in_environment() -> bool:
    return bool(os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN"))


def _token() -> str:
    return "the token in HF_TOKEN" if _is_in_environment() else "your token"


def _log_in() -> str:
    """Return how to use another token; one in the environment comes before the one that is logged in with."""
    return "set HF_TOKEN anew, or unset it and run `hf auth login`" if _is_in_environment() else "run `hf auth login`"
