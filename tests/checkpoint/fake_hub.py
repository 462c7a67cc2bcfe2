"""A model hub on loopback that speaks what the installed huggingface_hub asks: for models, files, and parts of files.

Weights are answered as the hub answers large files: a redirect that names content and size, then the bytes from
elsewhere. What goes wrong is planned: `hub.faults.append(HubFault("cut", "model.safetensors", times=2))`.
"""

import hashlib
import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from generators.base import notices
from generators.checkpoint.sources import patience

COMMIT = "c0ffee" * 6 + "c0ff"
LARGE = (".safetensors", ".bin")
RESTRICTED = "Access to model is restricted"
ERRORS = {  # status, X-Error-Code, X-Error-Message
    "gated": (401, "GatedRepo", f"{RESTRICTED}. You must have access to it and be authenticated to access it."),
    "no-access": (403, "GatedRepo", f"{RESTRICTED} and you are not in the authorized list."),
    "bad-token": (401, "", "Invalid credentials in Authorization header"),
    "absent": (404, "RepoNotFound", "Repository not found"),
    "private": (401, "RepoNotFound", "Repository not found"),
    "no-revision": (404, "RevisionNotFound", "Invalid rev id"),
}


@dataclass
class HubFault:
    """What goes wrong: with which addresses, how often, and what is done first."""

    kind: str  # a status, "cut", "html", "shift", "whole", or one of ERRORS
    where: str = ""
    times: int = 1
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    path: str
    span: str | None


@dataclass
class HubServer:
    """The server: repositories are folders under `root`."""

    root: Path
    faults: list[HubFault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    sent: int = 0  # bytes of weights
    renamed: dict[str, str] = field(default_factory=dict)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def elsewhere(self) -> str:
        """Return the address of the server that holds the bytes: the same, by another name."""
        return self.url.replace("127.0.0.1", "localhost")

    def fault(self, path: str, *kinds: str) -> HubFault | None:
        with self.lock:
            for fault in self.faults:
                if fault.where in path and fault.times > 0 and (not kinds or fault.kind in kinds):
                    fault.times -= 1
                    return fault
        return None

    def repository(self, repo: str) -> Path:
        return self.root / repo

    def weights_asked(self) -> list[Asked]:
        return [a for a in self.asked if a.path.startswith("/cdn/")]


REPO = "([^/]+/[^/]+)"
ROUTES = {  # what answers an address
    rf"/api/models/{REPO}(?:/revision/(.+))?": "model",
    rf"/{REPO}/resolve/([^/]+)/(.+)": "resolve",
    rf"/cdn/{REPO}/([^/]+)/(.+)": "content",
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        with self.hub.lock:
            self.hub.asked.append(Asked(path, self.headers.get("Range")))
        fault = self.hub.fault(path, *ERRORS, *map(str, (403, 408, 429, 500, 502, 503, 504)), "html")
        if fault is not None:
            return self.fail(fault)
        for old, new in self.hub.renamed.items():
            if f"/{old}/" in path:
                return self.send(307, b"", {"Location": self.path.replace(f"/{old}/", f"/{new}/")})
        for pattern, answer in ROUTES.items():
            if match := re.fullmatch(pattern, path):
                return getattr(self, answer)(*match.groups())
        return self.send(404, b"")

    def do_HEAD(self) -> None:
        self.do_GET()

    def fail(self, fault: HubFault) -> None:
        if fault.kind == "html":
            return self.send(200, b"<html>Please sign in</html>", {"Content-Type": "text/html; charset=utf-8"})
        status, code, message = ERRORS[fault.kind] if fault.kind in ERRORS else (int(fault.kind), "", "")
        return self.send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": message, **fault.headers})

    def model(self, repo: str, revision: str | None) -> None:
        folder = self.hub.repository(repo)
        if not folder.is_dir():
            return self.send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        names = [{"rfilename": path.name} for path in sorted(folder.iterdir())]
        about = {"_id": "1", "id": repo, "modelId": repo, "tags": [], "private": False}
        body = json.dumps({**about, "sha": COMMIT, "siblings": names}).encode()
        return self.send(200, body, {"Content-Type": "application/json"})

    def resolve(self, repo: str, revision: str, name: str) -> None:
        folder = self.hub.repository(repo)
        path = folder / name
        if not folder.is_dir():
            return self.send(404, b"", {"X-Error-Code": "RepoNotFound"})
        if not path.is_file():
            return self.send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if not name.endswith(LARGE):
            return self.send(200, content, {"ETag": f'"{digest[:40]}"', "X-Repo-Commit": COMMIT})
        headers = {
            "X-Repo-Commit": COMMIT,
            "X-Linked-Etag": f'"{digest}"',
            "X-Linked-Size": str(len(content)),
            "Location": f"{self.hub.elsewhere}/cdn/{repo}/{COMMIT}/{name}",
        }
        return self.send(302, b"", headers)

    def content(self, repo: str, revision: str, name: str) -> None:
        content = (self.hub.repository(repo) / name).read_bytes()
        asked = f"/cdn/{repo}/{revision}/{name}"
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if span is None or self.hub.fault(asked, "whole") is not None:
            return self.send(200, content, counted=True)
        first = int(span[1])
        last = min(int(span[2] or len(content) - 1), len(content) - 1)
        part = content[first : last + 1]
        if self.hub.fault(asked, "shift") is not None:
            first += 1
        headers = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
        return self.send(206, part, headers, counted=True, cut=self.hub.fault(asked, "cut") is not None)

    def send(
        self, status: int, body: bytes, headers: Mapping[str, str] = {}, counted: bool = False, cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/octet-stream", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut:
            body = body[: max(len(body) // 2, 1)]
            self.close_connection = True
        if counted:
            with self.hub.lock:
                self.hub.sent += len(body)
        self.wfile.write(body)


def at_hub(server: HubServer, folder, monkeypatch) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "client-cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("ATLAS_CACHE", str(folder / "cache"))
    monkeypatch.setattr(patience, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(patience, "_servers", {})
    notices.forget()


class QuietServer(ThreadingHTTPServer):
    """A server to which clients that hang up are nothing special."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(root: Path) -> Iterator[HubServer]:
    hub = HubServer(root)
    handler = type("OwnHandler", (Handler,), {"hub": hub})
    server = QuietServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
