"""Seeing a run: pictures for notebooks, a page to send to a colleague, a live view.

`Result.plot`, `Result.report`, `certificate.plot`, ... lead here. matplotlib and Jinja2 (extra
`report`) are loaded when something is drawn, and not before.
"""
