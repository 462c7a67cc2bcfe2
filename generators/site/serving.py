"""The built site, served on this machine."""

import sys
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Pages(SimpleHTTPRequestHandler):
    """Files of a folder; an address that can name no file isn't found."""

    def send_head(self) -> Any:
        try:
            return super().send_head()
        except ValueError:  # a null byte
            self.send_error(HTTPStatus.NOT_FOUND)
            return None


class PageServer(ThreadingHTTPServer):
    """Serves pages; a browser that hangs up is no error."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
