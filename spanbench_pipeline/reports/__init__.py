"""Tables -> Markdown and HTML. Reports compute no figure of their own: they choose and format."""
