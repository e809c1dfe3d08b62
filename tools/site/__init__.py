"""The documentation site: ``make site`` builds it from ``docs/`` into ``build/site/html``.

navigation   which page stands where
staging      pages of the repository as pages of the site: links lead to pages, linked files become pages
sources      the page of a file, a folder or a notebook of the repository
api          the pages that come from docstrings and from the command line
conf         what Sphinx has to know
breaks       where long names in tables may be broken
links        looks at what was built: does every link lead somewhere, and is nothing loaded from elsewhere?
"""
