"""`make paper`: print the paper, a page of the built site, as a PDF beside it or to the path that is named."""

import sys
from pathlib import Path

from tests.site.conftest import executable, served, started_browser
from tests.site.test_browser import load_pictures

SITE = Path("site")
FILE = Path(sys.argv[1]) if len(sys.argv) > 1 else SITE / "paper" / "helix-atlas.pdf"
FOOTER = """<div style="width: 100%; font-size: 7pt; text-align: center"><span class="pageNumber"></span></div>"""
MARGIN = {"top": "16mm", "bottom": "16mm", "left": "15mm", "right": "15mm"}


def main() -> None:
    """Print it."""
    if not (SITE / "paper" / "index.html").is_file():
        sys.exit("There is no site/paper/; build the site first (make site).")
    path = executable()
    if path is None:
        sys.exit("Chromium isn't installed (name one in ATLAS_CHROMIUM).")
    with served(SITE) as address, started_browser(path) as browser:
        page = browser.new_page(color_scheme="light")
        page.goto(f"{address}paper/")
        page.emulate_media(media="print")
        load_pictures(page)
        page.pdf(path=FILE, format="A4", margin=MARGIN, display_header_footer=True, header_template="<i></i>",
                 footer_template=FOOTER, tagged=True, outline=True)  # fmt: skip
    print(f"The paper is {FILE}.")


if __name__ == "__main__":
    main()
