"""Pieces of an HTML page: the document, blocks as HTML, charts as SVG."""
