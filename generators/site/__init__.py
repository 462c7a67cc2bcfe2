"""From stored results to pages, figures and data, and what MkDocs makes of them."""
