"""Report blocks as Markdown, HTML and SVG."""
